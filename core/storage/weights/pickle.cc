#include "core/storage/weights/pickle.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>
#include <utility>

namespace ringtail {
namespace {

using Kind = PickleValue::Kind;

// Opcodes by their names in Python's pickle.py.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneOp = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOp = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTupleOp = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr uint8_t kMostProtocol = 5;
constexpr size_t kMaxNameBytes = 100;  // of a module or class
constexpr char kOrderedDict[] = "collections.OrderedDict";

}  // namespace

class PickleMachine {
 public:
  explicit PickleMachine(std::span<const std::byte> bytes) : bytes_(bytes) {}

  StatusOr<Pickle> Run() {
    while (true) {
      uint8_t op = 0;
      at_ = next_;
      if (!Number(&op)) return Fail("the stream ends without STOP");
      if (op == kStop) break;
      RT_RETURN_IF_ERROR(Execute(op));
    }
    if (stack_.size() != 1 || !marks_.empty()) return Fail("STOP with other than one value");
    pickle_.root_ = stack_.back();
    return std::move(pickle_);
  }

 private:
  Status Fail(std::string_view reason) const {
    return DataLoss(fmt::format("byte {} of its pickle: {}", at_, reason));
  }

  template <typename T>
  bool Number(T* value) {
    if (bytes_.size() - next_ < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + next_, sizeof(T));  // little-endian, like our processors
    next_ += sizeof(T);
    return true;
  }

  Status Push(PickleValue value) {
    if (pickle_.values_.size() == kMaxPickleValues) return Fail("there are too many values");
    stack_.push_back(static_cast<uint32_t>(pickle_.values_.size()));
    pickle_.values_.push_back(std::move(value));
    return OkStatus();
  }

  // Values that may be taken: those above the last mark.
  size_t Above() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  std::vector<uint32_t> Take(size_t count) {
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  Status TakeToMark(std::vector<uint32_t>* items) {
    if (marks_.empty()) return Fail("there is no mark");
    *items = Take(Above());
    marks_.pop_back();
    return OkStatus();
  }

  Status Execute(uint8_t op) {
    switch (op) {
      case kProto: {
        uint8_t version = 0;
        if (!Number(&version) || version > kMostProtocol) return Fail("an unknown protocol");
        return OkStatus();
      }
      case kFrame: {
        uint64_t size = 0;
        return Number(&size) ? OkStatus() : Fail("the stream ends in a number");
      }
      case kMark:
        marks_.push_back(stack_.size());
        return OkStatus();
      case kPopMark: {
        std::vector<uint32_t> dropped;
        return TakeToMark(&dropped);
      }
      case kPop:
      case kDup:
        if (Above() < 1) return Fail("the stack is empty");
        if (op == kPop) stack_.pop_back();
        if (op == kDup) stack_.push_back(stack_.back());
        return OkStatus();
      case kBinGet:
      case kLongBinGet:
      case kBinPut:
      case kLongBinPut:
      case kMemoize:
        return Memo(op);
      case kBinString:
      case kShortBinString:
      case kBinUnicode:
      case kShortBinUnicode:
      case kBinBytes:
      case kShortBinBytes:
        return Text(op);
      case kTupleOp:
      case kTuple1:
      case kTuple2:
      case kTuple3:
      case kAppend:
      case kAppends:
      case kSetItem:
      case kSetItems:
        return Fill(op);
      case kGlobalOp:
      case kStackGlobal:
      case kReduce:
      case kNewObj:
      case kBuild:
      case kBinPersId:
        return Object(op);
      default:
        return Scalar(op);
    }
  }

  template <typename T>
  Status PushInt() {
    T value = 0;
    if (!Number(&value)) return Fail("the stream ends in a number");
    return Push({.kind = Kind::kInt, .number = value});
  }

  Status Scalar(uint8_t op) {
    switch (op) {
      case kNoneOp:
        return Push({});
      case kNewTrue:
      case kNewFalse:
        return Push({.kind = Kind::kBool, .number = op == kNewTrue});
      case kBinInt:
        return PushInt<int32_t>();
      case kBinInt1:
        return PushInt<uint8_t>();
      case kBinInt2:
        return PushInt<uint16_t>();
      case kLong1:
        return Long();
      case kBinFloat: {
        uint64_t dropped = 0;
        if (!Number(&dropped)) return Fail("the stream ends in a number");
        return Push({.kind = Kind::kFloat});
      }
      case kEmptyDict:
        return Push({.kind = Kind::kDict});
      case kEmptyList:
        return Push({.kind = Kind::kList});
      case kEmptyTuple:
        return Push({.kind = Kind::kTuple});
      default:
        return Fail(fmt::format("opcode {:#04x}, which a file of weights does not need", op));
    }
  }

  // Two's complement, little-endian, of up to 8 bytes.
  Status Long() {
    uint8_t size = 0;
    if (!Number(&size) || size > bytes_.size() - next_) return Fail("the stream ends in a number");
    if (size > sizeof(int64_t)) return Fail("an integer of more than 64 bits");
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + next_, size);
    next_ += size;
    const int spare = 64 - 8 * size;
    const int64_t number = size == 0 ? 0 : static_cast<int64_t>(value << spare) >> spare;
    return Push({.kind = Kind::kInt, .number = number});
  }

  Status Text(uint8_t op) {
    uint32_t size = 0;
    uint8_t short_size = 0;
    const bool is_short = op == kShortBinString || op == kShortBinUnicode || op == kShortBinBytes;
    const bool read = is_short ? Number(&short_size) : Number(&size);
    if (is_short) size = short_size;
    if (!read || size > bytes_.size() - next_) return Fail("the stream ends in a text");
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + next_, size);
    next_ += size;
    return Push({.kind = Kind::kString, .text = std::move(text)});
  }

  Status Memo(uint8_t op) {
    uint32_t index = 0;
    uint8_t short_index = 0;
    bool read = true;
    if (op == kMemoize) {
      index = static_cast<uint32_t>(memo_.size());
    } else if (op == kBinGet || op == kBinPut) {
      read = Number(&short_index);
      index = short_index;
    } else {
      read = Number(&index);
    }
    if (!read) return Fail("the stream ends in a number");
    if (op == kBinGet || op == kLongBinGet) {
      const auto found = memo_.find(index);
      if (found == memo_.end()) return Fail("a memo that was never made");
      stack_.push_back(found->second);
      return OkStatus();
    }
    if (Above() < 1) return Fail("the stack is empty");
    if (memo_.size() >= kMaxPickleValues) return Fail("there are too many memos");
    memo_[index] = stack_.back();
    return OkStatus();
  }

  // Makes tuples, and adds to lists and dicts.
  Status Fill(uint8_t op) {
    std::vector<uint32_t> items;
    if (op == kTupleOp || op == kAppends || op == kSetItems) {
      RT_RETURN_IF_ERROR(TakeToMark(&items));
    } else {
      const size_t count = op == kAppend ? 1 : op == kSetItem ? 2 : op - kTuple1 + 1;
      if (Above() < count) return Fail("the stack is empty");
      items = Take(count);
    }
    if (op == kTupleOp || op == kTuple1 || op == kTuple2 || op == kTuple3) {
      return Push({.kind = Kind::kTuple, .items = std::move(items)});
    }
    const bool dict = op == kSetItem || op == kSetItems;
    if (Above() < 1) return Fail("the stack is empty");
    PickleValue& container = pickle_.values_[stack_.back()];
    if (container.kind == Kind::kCall) return OkStatus();  // an object of Python that acts as one
    if (container.kind != (dict ? Kind::kDict : Kind::kList)) return Fail("items for no container");
    if (dict && items.size() % 2 != 0) return Fail("a key without a value");
    container.items.insert(container.items.end(), items.begin(), items.end());
    return OkStatus();
  }

  bool Line(std::string* line) {
    for (line->clear(); next_ < bytes_.size() && line->size() <= kMaxNameBytes; ++next_) {
      const char c = static_cast<char>(bytes_[next_]);
      if (c == '\n') {
        ++next_;
        return true;
      }
      line->push_back(c);
    }
    return false;
  }

  Status Object(uint8_t op) {
    if (op == kGlobalOp) {
      std::string module, name;
      if (!Line(&module) || !Line(&name)) return Fail("a name without an end");
      return Push({.kind = Kind::kGlobal, .text = module + "." + name});
    }
    const size_t count = op == kBinPersId ? 1 : 2;
    if (Above() < count) return Fail("the stack is empty");
    std::vector<uint32_t> items = Take(count);
    if (op == kBinPersId) return Push({.kind = Kind::kPersistent, .items = std::move(items)});
    if (op == kBuild) {
      stack_.push_back(items[0]);  // without the state
      return OkStatus();
    }
    const PickleValue &first = pickle_.values_[items[0]], &second = pickle_.values_[items[1]];
    if (op == kStackGlobal) {
      if (first.kind != Kind::kString || second.kind != Kind::kString) return Fail("no name");
      if (first.text.size() > kMaxNameBytes || second.text.size() > kMaxNameBytes) {
        return Fail("a name without an end");
      }
      return Push({.kind = Kind::kGlobal, .text = first.text + "." + second.text});
    }
    if (first.kind == Kind::kGlobal && first.text == kOrderedDict) {
      if (second.kind != Kind::kTuple || !second.items.empty()) {
        return Fail("an OrderedDict that is made of something");
      }
      return Push({.kind = Kind::kDict});
    }
    return Push({.kind = Kind::kCall, .items = std::move(items)});
  }

  const std::span<const std::byte> bytes_;
  size_t at_ = 0, next_ = 0;  // of the opcode; of what is read next
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint32_t, uint32_t> memo_;
};

StatusOr<Pickle> Pickle::Parse(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxPickleBytes) {
    return DataLoss(fmt::format("its pickle has {} bytes, more than the {} allowed", bytes.size(),
                                kMaxPickleBytes));
  }
  return PickleMachine(bytes).Run();
}

bool Pickle::Calls(const PickleValue& value, std::string_view name) const {
  if (value.kind != Kind::kCall) return false;
  const PickleValue& called = values_[value.items[0]];
  return called.kind == Kind::kGlobal && called.text == name;
}

const PickleValue* Pickle::Find(const PickleValue& dict, std::string_view key) const {
  for (size_t i = 0; dict.kind == Kind::kDict && i + 1 < dict.items.size(); i += 2) {
    const PickleValue& k = values_[dict.items[i]];
    if (k.kind == Kind::kString && k.text == key) return &values_[dict.items[i + 1]];
  }
  return nullptr;
}

}  // namespace ringtail
