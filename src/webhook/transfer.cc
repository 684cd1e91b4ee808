#include "webhook/transfer.h"

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::webhook {
namespace {

using base::format;
using std::chrono::microseconds;

// Fresh enough for a fail-over by DNS. libcurl walks through all names that it remembers whenever a
// transfer ends, so a long memory of ten thousand names would cost more than asking again.
constexpr long kNameMemorySeconds = 2;
// What an answer is read into. libcurl keeps one for each transfer, and most answers are short.
constexpr long kReadBytes = 4 * 1024;

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  HAPAX_ASSERT(code == CURLE_OK, "libcurl has the options that we set");
}

// An empty text is libcurl's default.
void set_text(CURL* easy, CURLoption option, const std::string& text) {
  set(easy, option, text.empty() ? nullptr : text.c_str());
}

bool same_name(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

// Texts of libcurl may quote what a server sent.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c > 0x7e || c < 0; }, '?');
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

}  // namespace

Transfer::Transfer(TransferOwner& owner, const Guard& guard)
    : owner_(owner), guard_(guard), easy_(curl_easy_init()) {
  HAPAX_ASSERT(easy_ != nullptr, "libcurl makes handles");
  set_once();
}

Transfer::~Transfer() { curl_easy_cleanup(easy_); }

void Transfer::set_once() {
  set(easy_, CURLOPT_PRIVATE, static_cast<void*>(this));
  set(easy_, CURLOPT_ERRORBUFFER, words_.data());
  set(easy_, CURLOPT_NOSIGNAL, 1L);
  // A transfer that ends while its name is looked up must not wait for the thread that looks.
  set(easy_, CURLOPT_QUICK_EXIT, 1L);
  set(easy_, CURLOPT_DNS_CACHE_TIMEOUT, kNameMemorySeconds);
  set(easy_, CURLOPT_BUFFERSIZE, kReadBytes);
  set(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy_, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(easy_, CURLOPT_PATH_AS_IS, 1L);
  set(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy_, CURLOPT_PROXY, "");    // not what the environment says
  set(easy_, CURLOPT_NOPROXY, "");  // likewise
  set(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy_, CURLOPT_HEADERFUNCTION, &Transfer::take_head);
  set(easy_, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy_, CURLOPT_WRITEFUNCTION, &Transfer::take_body);
  set(easy_, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(easy_, CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
  set(easy_, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  // A connection outlives the transfer that opened it.
  set(easy_, CURLOPT_CLOSESOCKETFUNCTION, &Transfer::close_socket);
  set(easy_, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(&owner_));
  set(easy_, CURLOPT_PREREQFUNCTION, &Transfer::before_request);
  set(easy_, CURLOPT_PREREQDATA, static_cast<void*>(this));
}

void Transfer::begin(Stage stage, std::chrono::nanoseconds waited) {
  stage_ = stage;
  set_url();
  const bool bare = request.body.empty() && request.method != "POST" && request.method != "PUT" &&
                    request.method != "PATCH";
  if (bare) {
    set(easy_, CURLOPT_HTTPGET, 1L);  // no Content-Length
  } else {
    set(easy_, CURLOPT_POST, 1L);
    set(easy_, CURLOPT_POSTFIELDS, request.body.data());
    set(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  set(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set_headers();
  if (request.tls != tls_set_) set_tls();
  if (request.proxy != proxy_set_) set_proxy();
  set_times(waited);
}

void Transfer::set_url() {
  const bool encrypted = same_name(std::string_view(request.url).substr(0, 6), "https:");
  if (!encrypted || request.tls.server_name.empty()) {
    set(easy_, CURLOPT_URL, request.url.c_str());
    if (renamed_.url.empty()) return;
    renamed_ = {};
    return set<curl_slist*>(easy_, CURLOPT_CONNECT_TO, nullptr);
  }
  renamed_ = renamed_url(request.url, request.tls.server_name);
  connect_to_.data = renamed_.connect_to.data();
  set(easy_, CURLOPT_URL, renamed_.url.c_str());
  set(easy_, CURLOPT_CONNECT_TO, &connect_to_);
}

void Transfer::set_headers() {
  lines_.clear();
  bool has_type = false;
  if (!renamed_.url.empty()) lines_ += format("Host: {}", renamed_.authority) + '\0';
  for (const auto& [name, value] : request.headers) {
    has_type = has_type || same_name(name, "content-type");
    lines_ += name;
    if (trimmed(value).empty()) {
      lines_ += ';';  // libcurl's way to say a header without a value
    } else {
      lines_ += ": ";
      lines_ += value;
    }
    lines_ += '\0';
  }
  // Headers that libcurl would add.
  for (const std::string_view own : {"Expect:", "Accept:", "Content-Type:"}) {
    if (own == "Content-Type:" && has_type) continue;
    lines_ += own;
    lines_ += '\0';
  }
  list_.clear();
  for (std::size_t at = 0; at < lines_.size(); at = lines_.find('\0', at) + 1) {
    list_.push_back({lines_.data() + at, nullptr});
  }
  for (std::size_t i = 1; i < list_.size(); ++i) list_[i - 1].next = &list_[i];
  set(easy_, CURLOPT_HTTPHEADER, list_.data());
}

void Transfer::set_tls() {
  const EndpointTls& tls = request.tls;
  if (tls.ca_file.empty()) {
    const auto* version = curl_version_info(CURLVERSION_NOW);
    set(easy_, CURLOPT_CAINFO, version->cainfo);
    set(easy_, CURLOPT_CAPATH, version->capath);
  } else {
    set(easy_, CURLOPT_CAINFO, tls.ca_file.c_str());
    set<const char*>(easy_, CURLOPT_CAPATH, nullptr);  // in place of the machine's, not beside them
  }
  set_text(easy_, CURLOPT_SSLCERT, tls.certificate_file);
  set_text(easy_, CURLOPT_SSLKEY, tls.key_file);
  set(easy_, CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
  set(easy_, CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
  tls_set_ = tls;
}

void Transfer::set_proxy() {
  set(easy_, CURLOPT_PROXY, request.proxy.url.c_str());
  proxy_set_ = request.proxy;
}

void Transfer::set_times(std::chrono::nanoseconds waited) {
  using std::chrono::milliseconds;
  reply.times.waited = std::chrono::duration_cast<microseconds>(waited);
  const auto left = std::chrono::ceil<milliseconds>(request.total_timeout - waited).count();
  set(easy_, CURLOPT_TIMEOUT_MS, std::max<long>(1, left));  // 0 would be none
  set(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
}

void Transfer::move_to(Stage stage) {
  owner_.moved(stage_, stage);
  stage_ = stage;
}

bool Transfer::refused(const IpAddress& address) {
  if (const auto words = guard_.refusal(address)) guard_words_ = *words;
  return !guard_words_.empty();
}

// Q4: the address here is the one that libcurl connects to; there is no later lookup.
curl_socket_t Transfer::open_socket(void* self, curlsocktype purpose, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.stage_ == Stage::kSent) {  // Q1: only a repetition needs a connection now.
    transfer.repeated_ = true;
    return CURL_SOCKET_BAD;
  }
  if (purpose != CURLSOCKTYPE_IPCXN) return CURL_SOCKET_BAD;
  if (transfer.judged()) {
    const auto ip = ip_of(address->addr);
    // One refused address of a name is enough: the others are of the same hand.
    if (!ip || transfer.refused(*ip)) return CURL_SOCKET_BAD;
  }
  const int opened = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened < 0) return CURL_SOCKET_BAD;
  transfer.owner_.opened(opened);
  if (transfer.stage_ != Stage::kConnecting) transfer.move_to(Stage::kConnecting);
  return opened;
}

int Transfer::close_socket(void* owner, curl_socket_t socket) {
  static_cast<TransferOwner*>(owner)->closing(socket);
  return ::close(socket);
}

int Transfer::before_request(void* self, char* remote, char* /*local*/, int /*remote_port*/,
                             int /*local_port*/) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.stage_ == Stage::kSent) {  // Q1: one request has gone out.
    transfer.repeated_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  if (transfer.request.may_leave && !transfer.request.may_leave()) {
    transfer.withheld_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  // Q4: a pooled connection was judged when it was opened, but perhaps for a request without the
  // guard.
  if (transfer.judged()) {
    const auto ip = parse_ip(remote);
    if (!ip || transfer.refused(*ip)) return CURL_PREREQFUNC_ABORT;
  }
  transfer.move_to(Stage::kSent);
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::take_head(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view line(bytes, size * count);
  transfer.head_bytes_ += line.size();
  if (transfer.head_bytes_ > kHeadBytesMax) return CURL_WRITEFUNC_ERROR;
  transfer.take_field(line);
  return line.size();
}

void Transfer::take_field(std::string_view line) {
  if (line.starts_with("HTTP/")) {  // a head begins; the one before was a 1xx
    head_ended_ = false;
    for (std::string* field :
         {&reply.retry_after, &reply.date, &reply.content_type, &reply.location}) {
      field->clear();
    }
    return;
  }
  if (trimmed(line).empty()) head_ended_ = true;
  const std::size_t colon = line.find(':');
  if (head_ended_ || colon == std::string_view::npos) return;  // a trailer is not a header
  const std::string_view name = line.substr(0, colon);
  std::string* field = nullptr;
  switch (name.size()) {
    case 4:
      if (same_name(name, "date")) field = &reply.date;
      break;
    case 8:
      if (same_name(name, "location")) field = &reply.location;
      break;
    case 11:
      if (same_name(name, "retry-after")) field = &reply.retry_after;
      break;
    case 12:
      if (same_name(name, "content-type")) field = &reply.content_type;
      break;
    default:
      break;
  }
  if (field != nullptr) *field = trimmed(line.substr(colon + 1));
}

std::size_t Transfer::take_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  SendReply& reply = static_cast<Transfer*>(self)->reply;
  const std::size_t room = kBodyKeptMax - reply.body.size();
  const std::size_t length = size * count;
  reply.body.append(bytes, std::min(length, room));
  reply.truncated = length > room;
  return reply.truncated ? CURL_WRITEFUNC_ERROR : length;
}

SendCause Transfer::cause_of(CURLcode code) const {
  if (!guard_words_.empty()) return SendCause::kGuard;
  if (repeated_) return SendCause::kBroken;
  if (withheld_) return SendCause::kWithheld;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return SendCause::kName;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
      return SendCause::kConnect;
    case CURLE_OPERATION_TIMEDOUT:
      return SendCause::kTimeout;
    case CURLE_URL_MALFORMAT:
      return SendCause::kInvalid;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
      return SendCause::kTls;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return SendCause::kBroken;
    default:
      return SendCause::kProtocol;
  }
}

void Transfer::measure() {
  const auto time_of = [this](CURLINFO which) {
    curl_off_t time = 0;
    curl_easy_getinfo(easy_, which, &time);
    return microseconds(time);
  };
  reply.times.name = time_of(CURLINFO_NAMELOOKUP_TIME_T);
  reply.times.connected = time_of(CURLINFO_CONNECT_TIME_T);
  reply.times.tls = time_of(CURLINFO_APPCONNECT_TIME_T);
  reply.times.first_byte = time_of(CURLINFO_STARTTRANSFER_TIME_T);
  reply.times.total = time_of(CURLINFO_TOTAL_TIME_T);
}

void Transfer::conclude(CURLcode code) {
  measure();
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  reply.status = head_ended_ && status >= 200 ? static_cast<int>(status) : 0;
  if (code == CURLE_OK || reply.truncated) {
    reply.ending = SendEnding::kAnswered;
    return;
  }
  reply.ending = stage_ == Stage::kSent ? SendEnding::kUnknown : SendEnding::kNotSent;  // Q2
  reply.cause = cause_of(code);
  const std::string_view said = words_[0] != '\0' ? words_.data() : curl_easy_strerror(code);
  if (reply.cause == SendCause::kGuard) {
    reply.reason = format("the address guard refuses the endpoint: {}", guard_words_);
  } else if (withheld_) {
    reply.reason = "the time in which it may be sent is over";
  } else if (repeated_) {
    reply.reason = "the connection ended before the answer";
  } else if (head_bytes_ > kHeadBytesMax) {
    reply.reason = format("the head of the answer is larger than {} bytes", kHeadBytesMax);
  } else {
    reply.reason = printable(std::string(said));
  }
}

void Transfer::give_up(SendCause cause, std::string_view why) {
  reply.ending = stage_ == Stage::kSent ? SendEnding::kUnknown : SendEnding::kNotSent;
  reply.cause = cause;
  reply.reason = printable(std::string(why));
}

void Transfer::forget() {
  request = {};
  reply = {};
  done = nullptr;
  origin = nullptr;
  stage_ = Stage::kPooled;
  withheld_ = false;
  repeated_ = false;
  guard_words_ = {};
  head_bytes_ = 0;
  head_ended_ = false;
  words_[0] = '\0';
}

}  // namespace hapax::webhook
