#if canImport(CCurl)
  import CCurl

  /// A transfer with its libcurl easy handle.
  ///
  /// Only the engine's thread uses it.
  final class EasyTransfer {
    let transfer: Transfer
    let easy: UnsafeMutableRawPointer
    private var head: HeadParser
    private var isHeadOut = false
    private var isSent = false
    private var headers: UnsafeMutablePointer<curl_slist>?

    /// Creates a transfer on a new or reset handle.
    init(_ transfer: Transfer, easy: UnsafeMutableRawPointer) {
      self.transfer = transfer
      self.easy = easy
      head = HeadParser(followsRedirects: transfer.request.redirectsMax > 0)
    }

    /// Sets all options of the request on the easy handle.
    ///
    /// The handle keeps an unowned pointer to this object. It must be removed before this object is
    /// freed.
    func configure(now: ContinuousClock.Instant, certificateAuthorities: String?) {
      let request = transfer.request
      set(CURLOPT_URL, request.url)
      set(CURLOPT_NOSIGNAL, 1)
      set(CURLOPT_PROTOCOLS_STR, "http,https")
      // HTTP/1.1 sends one request per connection at a time. HTTP/2 without TLS fails in libcurl
      // 7.88.
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
      // Without this option the proxy's 200 response to CONNECT would be mistaken for the server's
      // response.
      set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
      // An empty proxy disables the proxy of the environment, unlike a missing setting.
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

    /// Ends the transfer with the result that libcurl reports.
    func finish(_ code: CURLcode) {
      if code == CURLE_OK {
        handOutHead(head.current)
        transfer.ended(nil)
      } else {
        transfer.ended(Self.error(code, host: Self.host(of: transfer.request.url)))
      }
    }

    /// Frees the list of header fields.
    ///
    /// Call it only when the handle no longer uses the list.
    func freeHeaders() {
      curl_slist_free_all(headers)
      headers = nil
    }

    //MARK: libcurl callbacks

    private static func from(_ context: UnsafeMutableRawPointer?) -> EasyTransfer? {
      context.map { Unmanaged<EasyTransfer>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Returns true if the request may be sent now on a connection that is established.
    ///
    /// If a reused connection ends without a byte, libcurl repeats the request on another
    /// connection. The server may have acted on the first request, so only idempotent requests are
    /// repeated.
    private func maySend() -> Bool {
      defer { isSent = true }
      return !isSent || head.current != nil || transfer.request.isIdempotent
    }

    private func body(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
      // A redirect that is not followed also has a body.
      handOutHead(head.current)
      switch transfer.received(UnsafeRawBufferPointer(start: bytes, count: count)) {
      case .stored, .hold: return count
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

    /// The hosts of the metadata server on Google's machines, which a proxy cannot reach.
    private static let metadataHosts: Set = ["metadata.google.internal", "169.254.169.254"]
    /// The return value that makes libcurl abort: any count other than the given one.
    private static let abort = -1
    /// The size of the read buffer.
    ///
    /// The default of 16 KiB would split large responses unnecessarily.
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
            // The body is copied, so that the request need not stay at its address in memory.
            if let start = bytes.baseAddress {
              ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, start)
            } else {
              set(CURLOPT_COPYPOSTFIELDS, "")
            }
          }
        }
        // A custom method would stay in effect after a redirect that changes POST to GET.
        if request.method != "POST" { set(CURLOPT_CUSTOMREQUEST, request.method) }
      }
    }

    private func setHeaders(_ request: OutboundRequest) {
      // Waiting for "100 Continue" costs a round trip, or a second if a server ignores the header.
      append("Expect:")
      if request.headers["Content-Type"] == nil { append("Content-Type:") }
      for (name, value) in request.headers {
        // In libcurl `Name:` omits a field, and `Name;` sends it with an empty value.
        append(value.isEmpty ? "\(name);" : "\(name): \(value)")
      }
      ccurl_set_pointer(easy, CURLOPT_HTTPHEADER, headers)
    }

    private func append(_ line: String) {
      // If memory is exhausted, the list stays as it was and the field is missing. There is no
      // better alternative.
      if let longer = curl_slist_append(headers, line) { headers = longer }
    }

    private func set(_ option: CURLoption, _ value: String) {
      _ = value.withCString { ccurl_set_pointer(easy, option, $0) }
    }

    private func set(_ option: CURLoption, _ value: Int) {
      ccurl_set_long(easy, option, value)
    }

    /// Returns milliseconds, rounded down but at least 1, because libcurl treats 0 as no limit.
    private static func milliseconds(_ duration: Duration) -> Int {
      let (seconds, attoseconds) = duration.components
      let bounded = min(max(seconds, 0), 1_000_000)
      return max(1, Int(bounded) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }

    /// Returns the host of a URL for messages and the loopback check; empty if it is malformed.
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
#endif
