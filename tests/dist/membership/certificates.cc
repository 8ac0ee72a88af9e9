#include "tests/dist/membership/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>

#include "core/check.h"

namespace ringtail {

struct TestAuthority::Pair {
  X509* certificate = X509_new();
  EVP_PKEY* key = EVP_EC_gen("P-256");
  Pair() = default;
  ~Pair() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Signed by `issuer`, which may be this pair itself.
  void Sign(const std::string& name, const Pair& issuer, long seconds_left, bool authority) {
    static std::atomic<long> serial = 1;
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds_left);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer.certificate));
    X509_EXTENSION* const constraints = X509V3_EXT_conf_nid(
        nullptr, nullptr, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
    X509_add_ext(certificate, constraints, -1);
    X509_EXTENSION_free(constraints);
    RT_CHECK(X509_sign(certificate, issuer.key, EVP_sha256()) > 0, "OpenSSL signs");
  }

  void Write(const std::string& certificate_path, const std::string& key_path) const {
    FILE* file = std::fopen(certificate_path.c_str(), "w");
    RT_CHECK(file != nullptr && PEM_write_X509(file, certificate) == 1, "the folder is ours");
    std::fclose(file);
    file = std::fopen(key_path.c_str(), "w");
    RT_CHECK(file != nullptr && chmod(key_path.c_str(), 0600) == 0 &&
                 PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
             "the folder is ours");
    std::fclose(file);
  }
};

TestAuthority::TestAuthority(const std::string& name) : pair_(new Pair) {
  pair_->Sign(name, *pair_, 7200, true);
  pair_->Write(folder_.File("ca.pem"), folder_.File("ca.key"));
}

TestAuthority::~TestAuthority() { delete pair_; }

SecurityOptions TestAuthority::Issue(const std::string& name, long seconds_left) const {
  Pair issued;
  issued.Sign(name, *pair_, seconds_left, false);
  const SecurityOptions files{.tls_cert = folder_.File(name + ".pem"),
                              .tls_key = folder_.File(name + ".key"),
                              .tls_ca = folder_.File("ca.pem")};
  issued.Write(files.tls_cert, files.tls_key);
  return files;
}

}  // namespace ringtail
