// Tokens that this program did not make: the examples of RFC 7515, 7519 and 8037, and ours made
// with the openssl command line (openssl dgst -sign, openssl pkeyutl -sign -rawin, openssl dgst
// -hmac). The claims of ours:
//   {"iss":"https://id.example","aud":["hapax","other"],"sub":"billing","tenant":"acme",
//    "roles":["produce","consume"],"iat":1700000000,"nbf":1700000000,"exp":1700003600}
#pragma once

#include <cstdint>
#include <string_view>

namespace hapax::auth {

inline constexpr std::int64_t kOpensslIssued = 1'700'000'000;
inline constexpr std::int64_t kOpensslExpires = 1'700'003'600;

inline constexpr std::string_view kOpensslRs256Key =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvl65YVF61NJXRumddVrO\n"
    "q3mgPsg69NrC038l3bkgEji6Ze6Ow/QUsHuSUpFFKoxiXiXVlydqcH7MtUhy/mtD\n"
    "tmdewyJGyA0t+xgxF/9Rfqiy1D4RO+2C6BpuAEPS+t7tJo3f5dF2mk3OSN01Lwty\n"
    "LR/svjrXLZpEfIkZ9E6pzrUHOObtxoaGa3MFoQwq0hu16G+d7QMLp5keQ3LB2Awn\n"
    "ZCkA8U5fMokpTShFHQIaQBwyqe9y4Gi4n8i+r9PL7KZwBl0mANjpPDQzoMJkN+jq\n"
    "qza03s4ji6CzSpI1k/Q9U7L68BzoYmZqXKXMgwXHRX9bWq8b27yY480f7csV4Y4w\n"
    "HwIDAQAB\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr std::string_view kOpensslRs256Token =
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImstUlMyNTYifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1"
    "wbGUiLCJhdWQiOlsiaGFwYXgiLCJvdGhlciJdLCJzdWIiOiJiaWxsaW5nIiwidGVuYW50IjoiYWNtZSIsInJvbGVzI"
    "jpbInByb2R1Y2UiLCJjb25zdW1lIl0sImlhdCI6MTcwMDAwMDAwMCwibmJmIjoxNzAwMDAwMDAwLCJleHAiOjE3MDA"
    "wMDM2MDB9.GFDq6BrpmTtXksSSzSFX3_ndOIv9Ca-Q0Zp116dvlDDEEjxG0z-piPB0cMyyrTaRuX0eCAMrgJBQw1mU"
    "2QXfzANlqCzNhVvwosOwtkxTNIb8eJyL69ukjCCzazJBl7AOVRyqFewgxxF9mVXNKlbSZNPgr9Pn2ZylUA0ZDKox2h"
    "1Kxuxns7-QKjV7Mp-fWIeykk9Fds3zE1sjemh5zMEEl8yCm1KXotaU-04gbt6o_W_4Km-UrlpoaF0RV-ypaD7RmcNX"
    "IHdLt1wJ9b97LpWprjddRgX6D4ct8nstMDKRRKPJM1VSBKLj01AxXPxeFEvGJ0N1B0oLoORFSdMsHlt4cQ";
inline constexpr std::string_view kOpensslEs256Key =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEj6TTTyOhVh+lTdR+jfkGGaZS/vBn\n"
    "OPokfLqQPhKSBM40qut44t9IuoQsaLCJPsjnHCNU3XgfxW7pBp1W0iHhoA==\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr std::string_view kOpensslEs256Token =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImstRVMyNTYifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1"
    "wbGUiLCJhdWQiOlsiaGFwYXgiLCJvdGhlciJdLCJzdWIiOiJiaWxsaW5nIiwidGVuYW50IjoiYWNtZSIsInJvbGVzI"
    "jpbInByb2R1Y2UiLCJjb25zdW1lIl0sImlhdCI6MTcwMDAwMDAwMCwibmJmIjoxNzAwMDAwMDAwLCJleHAiOjE3MDA"
    "wMDM2MDB9.UJYpB89teaSMc2o6dgXLED1XFdB7O-P3k29P2uwLdiYiNOu_4iD4o6wKbHtir6H3ZlIOOV1n7v5VwYuh"
    "IZaGpA";
inline constexpr std::string_view kOpensslEdDsaKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAY/f/89Nt5/pLLnfhxLUNYKyR6zib8IvT1Exir/BS06k=\n"
    "-----END PUBLIC KEY-----\n";
inline constexpr std::string_view kOpensslEdDsaToken =
    "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImstRWREU0EifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1"
    "wbGUiLCJhdWQiOlsiaGFwYXgiLCJvdGhlciJdLCJzdWIiOiJiaWxsaW5nIiwidGVuYW50IjoiYWNtZSIsInJvbGVzI"
    "jpbInByb2R1Y2UiLCJjb25zdW1lIl0sImlhdCI6MTcwMDAwMDAwMCwibmJmIjoxNzAwMDAwMDAwLCJleHAiOjE3MDA"
    "wMDM2MDB9._6yJmCn5gfv5f7FVLs7-_-y6EtVK8Vwp0zC24TC2u51t4CcAkQWfbJ2uNc27XDIMDyQz0CKCYhCiMcX7"
    "yxfSCA";
inline constexpr std::string_view kOpensslHs256Key = "correct horse battery staple and some more";
inline constexpr std::string_view kOpensslHs256Token =
    "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOlsiaGFwYXgiLCJvdGhlciJdL"
    "CJzdWIiOiJiaWxsaW5nIiwidGVuYW50IjoiYWNtZSIsInJvbGVzIjpbInByb2R1Y2UiLCJjb25zdW1lIl0sImlhdCI"
    "6MTcwMDAwMDAwMCwibmJmIjoxNzAwMDAwMDAwLCJleHAiOjE3MDAwMDM2MDB9.hc37hf3pUZKTJFxLpMtrimbmLVgU"
    "6ACJBeYsriWpubQ";

// RFC 7515 A.1
inline constexpr std::string_view kRfc7515Hs256Keys =
    R"({"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Y)"
    R"(j0iPS4hcgUuTwjAzZr1Z9CAow"}]})";
inline constexpr std::string_view kRfc7515Hs256Token =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQo"
    "gImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOE"
    "jXk";
// RFC 7515 A.2
inline constexpr std::string_view kRfc7515Rs256Keys =
    R"({"keys":[{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmf)"
    R"(HQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9)"
    R"(wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY)"
    R"(4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDT)"
    R"(W9gb54h4FRWyuXpoQ","e":"AQAB"}]})";
inline constexpr std::string_view kRfc7515Rs256Token =
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGx"
    "lLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5R"
    "Zmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrn"
    "byTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHW"
    "EsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0ig"
    "cN_IoypGlUPQGe77Rw";
// RFC 7515 A.3
inline constexpr std::string_view kRfc7515Es256Keys =
    R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y")"
    R"(:"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})";
inline constexpr std::string_view kRfc7515Es256Token =
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGx"
    "lLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8I"
    "SlSApmWQxfKTUJqPP3-Kg6NU1Q";
// RFC 8037 A.4
inline constexpr std::string_view kRfc8037EdDsaKeys =
    R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})"
    R"(]})";
inline constexpr std::string_view kRfc8037EdDsaToken =
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09P"
    "GcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
// RFC 7519 6.1
inline constexpr std::string_view kRfc7519NoneToken =
    "eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
    "LmNvbS9pc19yb290Ijp0cnVlfQ.";

}  // namespace hapax::auth
