import CCurl

/// A transfer on its easy handle; touched by the engine's thread alone.
final class EasyTransfer {
  let transfer: Transfer
  let easy: UnsafeMutableRawPointer
  private var head: HeadParser
  private var isHeadOut = false
  private var isSent = false
  private var headers: UnsafeMutablePointer<curl_slist>?

  /// Pairs a transfer with a fresh or reset handle.
  init(_ transfer: Transfer, easy: UnsafeMutableRawPointer) {
    self.transfer = transfer
    self.easy = easy
    head = HeadParser(followsRedirects: transfer.request.redirectsMax > 0)
  }

  /// Tells libcurl everything about the request.
  ///
  /// The handle keeps an unowned pointer to this object: it must be removed before this is freed.
  func configure(now: ContinuousClock.Instant, certificateAuthorities: String?) {
    let request = transfer.request
    set(CURLOPT_URL, request.url)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    // One request a connection at a time; h2 without TLS fails in libcurl 7.88.
    set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    set(CURLOPT_TCP_NODELAY, 1)
    set(CURLOPT_BUFFERSIZE, Self.readBufferBytes)
    set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(request.connectTimeout))
    if let deadline = transfer.deadline {
      set(CURLOPT_TIMEOUT_MS, Self.milliseconds(deadline - now))
    }
    if request.usesFreshConnection {
      set(CURLOPT_FRESH_CONNECT, 1)
      set(CURLOPT_FORBID_REUSE, 1)
    }
    if request.redirectsMax > 0 {
      set(CURLOPT_FOLLOWLOCATION, 1)
      set(CURLOPT_MAXREDIRS, request.redirectsMax)
      let isSecure = request.url.prefix(6).lowercased() == "https:"
      set(CURLOPT_REDIR_PROTOCOLS_STR, isSecure ? "https" : "http")
    }
    if let certificateAuthorities { set(CURLOPT_CAINFO, certificateAuthorities) }
    // Otherwise the proxy's "200" to CONNECT would be taken for the server's answer.
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // An empty proxy, unlike no setting, silences the environment's.
    let host = Self.host(of: request.url)
    if OutboundURL.isLoopback(host: host) || Self.metadataHosts.contains(host) {
      set(CURLOPT_PROXY, "")
    }
    setMethodAndBody(request)
    setHeaders(request)
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context)
    ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      EasyTransfer.from(context)?.body(bytes, count: size * count) ?? 0
    }
    ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context)
    ccurl_set_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      EasyTransfer.from(context)?.headLine(bytes, count: size * count) ?? 0
    }
    ccurl_set_pointer(easy, CURLOPT_PREREQDATA, context)
    ccurl_set_prereq(easy) { context, _, _, _, _ in
      EasyTransfer.from(context)?.maySend() ?? true
        ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
    }
  }

  /// Ends the transfer as libcurl says it ended.
  func finish(_ code: CURLcode) {
    if code == CURLE_OK {
      handOutHead(head.current)
      transfer.ended(nil)
    } else {
      transfer.ended(Self.error(code, host: Self.host(of: transfer.request.url)))
    }
  }

  /// Frees the list of header fields, once the handle no longer uses it.
  func freeHeaders() {
    curl_slist_free_all(headers)
    headers = nil
  }

  // MARK: Called by libcurl

  private static func from(_ context: UnsafeMutableRawPointer?) -> EasyTransfer? {
    context.map { Unmanaged<EasyTransfer>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Whether the request may be sent now, over a connection that is there.
  ///
  /// When a connection that was used before ends without a byte, libcurl sends the request again over
  /// another. The server may have acted on the first, so only what can be done twice is sent again.
  private func maySend() -> Bool {
    defer { isSent = true }
    return !isSent || head.current != nil || Self.repeatable.contains(transfer.request.method)
  }

  private func body(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
    // A redirect that is not followed has a body too.
    handOutHead(head.current)
    switch transfer.received(UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .stored: return count
    case .pause: return Int(CURL_WRITEFUNC_PAUSE)
    case .abort: return Self.abort
    }
  }

  private func headLine(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
    switch head.line(UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .more: return count
    case .head(let head):
      handOutHead(head)
      return count
    case .tooLarge:
      transfer.ended(
        OutboundHTTPError(
          .tooLarge,
          "the response's head has more than \(HeadParser.bytesMax) bytes"
        )
      )
      return Self.abort
    }
  }

  private func handOutHead(_ head: ResponseHead?) {
    guard !isHeadOut, let head else { return }
    isHeadOut = true
    transfer.headArrived(head)
  }

  /// Google's machines have their metadata server beside them, where no proxy can reach it.
  private static let metadataHosts: Set = ["metadata.google.internal", "169.254.169.254"]
  /// The idempotent methods of HTTP.
  private static let repeatable: Set = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]
  /// The value that makes libcurl give up: any count other than the one given.
  private static let abort = -1
  /// The read buffer; libcurl's own 16 KiB would cut large answers into needlessly many pieces.
  private static let readBufferBytes = 64 << 10

  // MARK: Settings

  private func setMethodAndBody(_ request: OutboundRequest) {
    switch request.method {
    case "GET" where request.body.isEmpty: set(CURLOPT_HTTPGET, 1)
    case "HEAD": set(CURLOPT_NOBODY, 1)
    default:
      if request.body.isEmpty, !["POST", "PUT", "PATCH"].contains(request.method) {
        set(CURLOPT_HTTPGET, 1)
      } else {
        set(CURLOPT_POST, 1)
        ccurl_set_large(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
        request.body.withUnsafeBytes { bytes in
          // Copied, so that the request need not stay where it is in memory.
          if let start = bytes.baseAddress {
            ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, start)
          } else {
            set(CURLOPT_COPYPOSTFIELDS, "")
          }
        }
      }
      // A custom method would survive a redirect that turns POST into GET.
      if request.method != "POST" { set(CURLOPT_CUSTOMREQUEST, request.method) }
    }
  }

  private func setHeaders(_ request: OutboundRequest) {
    // Waiting for "100 Continue" costs a round trip, and a second where a server ignores it.
    append("Expect:")
    if request.headers["Content-Type"] == nil { append("Content-Type:") }
    for (name, value) in request.headers {
      // libcurl takes `Name:` for "leave it out" and `Name;` for an empty value.
      append(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }
    ccurl_set_pointer(easy, CURLOPT_HTTPHEADER, headers)
  }

  private func append(_ line: String) {
    // Without memory the list stays as it was and the field is missing; there is nothing better to
    // do.
    if let longer = curl_slist_append(headers, line) { headers = longer }
  }

  private func set(_ option: CURLoption, _ value: String) {
    _ = value.withCString { ccurl_set_pointer(easy, option, $0) }
  }

  private func set(_ option: CURLoption, _ value: Int) {
    ccurl_set_long(easy, option, value)
  }

  /// Milliseconds, rounded up and at least 1, because 0 means "for ever" to libcurl.
  private static func milliseconds(_ duration: Duration) -> Int {
    let (seconds, attoseconds) = duration.components
    let bounded = min(max(seconds, 0), 1_000_000)
    return max(1, Int(bounded) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
  }

  /// The host in an address, for messages and the loopback check; empty when malformed.
  static func host(of url: String) -> String {
    guard let parts = curl_url() else { return "" }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK else { return "" }
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, CURLUPART_HOST, &text, 0) == CURLUE_OK, let text else { return "" }
    defer { curl_free(text) }
    return String(cString: text)
  }

  private static func error(_ code: CURLcode, host: String) -> OutboundHTTPError {
    let reason = String(cString: curl_easy_strerror(code))
    let kind: OutboundHTTPError.Kind =
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
        .cannotConnect
      case CURLE_OPERATION_TIMEDOUT: .timedOut
      case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .invalidRequest
      default: .failed
      }
    return OutboundHTTPError(kind, "\(host.isEmpty ? "request" : host): \(reason)")
  }
}
