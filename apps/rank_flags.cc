#include "apps/rank_flags.h"

#include <CLI/CLI.hpp>

namespace ringtail {

void AddRankFlags(CLI::App* app, const std::string& group, RankFlags* rank) {
  app->add_option("--rank", rank->rank, "The rank of this process, from 0")->group(group);
  app->add_option("--local-rank", rank->local_rank, "Its index among the ranks of this host")
      ->group(group);
  app->add_option("--master", rank->master, "The address of rank 0, the same on all ranks")
      ->type_name("HOST[:PORT]")
      ->group(group);
}

void AddSecurityFlags(CLI::App* app, const std::string& group, SecurityOptions* security,
                      std::optional<std::string>* token_file) {
  app->add_option("--token-file", *token_file,
                  "The job's secret, readable by its owner only (default: the value of "
                  "RINGTAIL_TOKEN, else the file named by RINGTAIL_TOKEN_FILE)")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--tls-cert", security->tls_cert, "The certificate of this rank")
      ->type_name("PEM")
      ->group(group);
  app->add_option("--tls-key", security->tls_key, "The key of that certificate")
      ->type_name("PEM")
      ->group(group);
  app->add_option("--tls-ca", security->tls_ca,
                  "The authority that signed the certificates of all ranks")
      ->type_name("PEM")
      ->group(group);
  app->add_flag("--insecure", security->insecure,
                "Plain TCP between hosts: only for networks without eavesdroppers")
      ->group(group);
}

}  // namespace ringtail
