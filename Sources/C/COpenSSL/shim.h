#ifndef HEARTH_COPENSSL_SHIM_H
#define HEARTH_COPENSSL_SHIM_H

// Hides what OpenSSL 3 deprecates, so that no use of it compiles.
#ifndef OPENSSL_API_COMPAT
#define OPENSSL_API_COMPAT 30000
#endif
#ifndef OPENSSL_NO_DEPRECATED
#define OPENSSL_NO_DEPRECATED
#endif

#include <openssl/opensslv.h>

#if !defined(OPENSSL_VERSION_MAJOR) || OPENSSL_VERSION_MAJOR < 3
#error "Hearth needs OpenSSL 3 (Debian and Ubuntu: libssl-dev, Homebrew: openssl@3)"
#endif

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>

// The value is an expression of macros, which Swift does not import.
static inline int hearth_public_key_selection(void) { return EVP_PKEY_PUBLIC_KEY; }

// The builder keeps the pointers to the names, so they must not be those of temporary Swift strings.
static inline int hearth_push_rsa_numbers(OSSL_PARAM_BLD *builder, const BIGNUM *modulus,
                                          const BIGNUM *exponent) {
  return OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
         OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1;
}

#endif
