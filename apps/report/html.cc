#include "apps/report/html.h"

#include "core/text/printable.h"

namespace ringtail {

std::string HtmlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string HtmlName(std::string_view name) { return "<bdi>" + HtmlEscape(name) + "</bdi>"; }

}  // namespace ringtail
