#include "dist/membership/security/tls_check.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <signal.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace ringtail {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <typename T, auto Free>
using Owned = std::unique_ptr<T, Deleter<Free>>;

using Bio = Owned<BIO, BIO_free_all>;
using Certificate = Owned<X509, X509_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Store = Owned<X509_STORE, X509_STORE_free>;
using StoreContext = Owned<X509_STORE_CTX, X509_STORE_CTX_free>;
using SslContext = Owned<SSL_CTX, SSL_CTX_free>;
using Ssl = Owned<SSL, SSL_free>;

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// All certificates of a PEM text, in order.
std::vector<Certificate> Certificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const Bio bio = BioOf(pem);
  for (;;) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  ERR_clear_error();  // "no more"
  return certificates;
}

// No password is ever asked for: a batch job cannot answer.
Key KeyOf(const std::string& pem) {
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

Store StoreOf(const std::vector<Certificate>& authorities) {
  Store store(X509_STORE_new());
  for (const Certificate& authority : authorities) {
    X509_STORE_add_cert(store.get(), authority.get());
  }
  return store;
}

// Why the chain that begins with the first certificate does not lead to the store; empty: it does.
std::string ChainError(const Store& store, const std::vector<Certificate>& chain) {
  STACK_OF(X509)* const others = sk_X509_new_null();
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(others, chain[i].get());
  const StoreContext context(X509_STORE_CTX_new());
  std::string error;
  if (X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), others) != 1 ||
      X509_verify_cert(context.get()) != 1) {
    error = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  }
  sk_X509_free(others);
  ERR_clear_error();
  return error;
}

std::string SubjectOf(const X509* certificate) {
  std::array<char, 256> name{};
  X509_NAME_oneline(X509_get_subject_name(certificate), name.data(), name.size());
  return name.data();
}

// ---- a handshake of our own ---------------------------------------------------------------------

enum class Want { kDone, kFailed, kTimeout };

// Repeats `call` until it is through, waiting for the socket in between.
template <typename Call>
Want Drive(SSL* ssl, int socket, Deadline deadline, const Call& call) {
  for (;;) {
    const int result = call();
    if (result > 0) return Want::kDone;
    const int error = SSL_get_error(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Want::kFailed;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Want::kTimeout;
    const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    pollfd ready{.fd = socket, .events = events, .revents = 0};
    poll(&ready, 1, static_cast<int>(left.count()));
  }
}

SslContext ContextFor(const TlsIdentity& tls) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  static constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kHttp2.data(), kHttp2.size());
  if (tls.empty()) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
    return context;
  }
  const std::vector<Certificate> chain = Certificates(tls.certificate);
  const Key key = KeyOf(tls.key);
  SSL_CTX_set1_cert_store(context.get(), StoreOf(Certificates(tls.authority)).get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (chain.empty() || key == nullptr) return nullptr;
  SSL_CTX_use_certificate(context.get(), chain.front().get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context.get(), chain[i].get());
  return context;
}

// The server's certificates were fine; whether ours are it says, if at all, after our part.
std::string ExplainRefusal(SSL* ssl, int socket, Deadline deadline) {
  std::array<char, 64> settings{};  // HTTP/2's, which a server says first
  ERR_clear_error();
  const Want read = Drive(ssl, socket, deadline, [&] {
    return SSL_read(ssl, settings.data(), static_cast<int>(settings.size()));
  });
  if (read != Want::kFailed) return "";
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return fmt::format("it does not accept the certificate of this rank{}; its log says why",
                     reason == nullptr ? "" : fmt::format(" ({})", reason));
}

// OpenSSL writes to sockets as to files, so that the signal SIGPIPE would end the process if the
// other end has hung up. While this lives, its thread does not get it.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoBrokenPipeSignal() {
    constexpr timespec kNow{};
    if (sigismember(&before_, SIGPIPE) == 1) return;
    while (sigtimedwait(&signal_, nullptr, &kNow) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

}  // namespace

Status CheckTls(const TlsIdentity& tls, const TlsNames& names) {
  const std::vector<Certificate> chain = Certificates(tls.certificate);
  if (chain.empty()) {
    return InvalidArgument(names.certificate + " holds no certificate in PEM form");
  }
  const std::vector<Certificate> authorities = Certificates(tls.authority);
  if (authorities.empty()) {
    return InvalidArgument(names.authority + " holds no certificate in PEM form");
  }
  const Key key = KeyOf(tls.key);
  if (key == nullptr) {
    return InvalidArgument(names.key + " holds no private key in PEM form without a password");
  }
  const bool belongs = X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!belongs) {
    return InvalidArgument(fmt::format("the key in {} is not that of the certificate in {}",
                                       names.key, names.certificate));
  }
  const std::string error = ChainError(StoreOf(authorities), chain);
  if (error.empty()) return {};
  return InvalidArgument(
      fmt::format("the certificate in {} ({}) does not hold before the authority in {}: {}",
                  names.certificate, SubjectOf(chain.front().get()), names.authority, error));
}

std::string ExplainTlsFailure(const SocketAddress& address, const TlsIdentity& tls,
                              Deadline deadline) {
  const StatusOr<OwnedDescriptor> socket = ConnectSocket(address, deadline);
  if (!socket.ok()) return "";
  const SslContext context = ContextFor(tls);
  if (context == nullptr) return "";
  const NoBrokenPipeSignal no_signal;
  const Ssl ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket->number());
  ERR_clear_error();
  const Want greeted =
      Drive(ssl.get(), socket->number(), deadline, [&] { return SSL_connect(ssl.get()); });
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const long verified = SSL_get_verify_result(ssl.get());
  const bool spoke_tls = SSL_get0_peer_certificate(ssl.get()) != nullptr;
  std::string explanation;
  if (tls.empty()) {
    if (greeted == Want::kDone || spoke_tls) {
      explanation = "it speaks TLS: give --tls-cert, --tls-key and --tls-ca to this rank, too";
    }
  } else if (greeted == Want::kDone) {
    explanation = ExplainRefusal(ssl.get(), socket->number(), deadline);
  } else if (greeted == Want::kFailed && verified != X509_V_OK) {
    explanation = fmt::format("its certificate does not hold before our authority (--tls-ca): {}",
                              X509_verify_cert_error_string(verified));
  } else if (greeted == Want::kFailed && reason == SSL_R_WRONG_VERSION_NUMBER) {
    explanation =
        "it does not speak TLS: give --tls-cert, --tls-key and --tls-ca to all ranks or "
        "to none";
  }
  ERR_clear_error();
  return explanation;
}

}  // namespace ringtail
