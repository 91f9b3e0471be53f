import OutboundHTTP
import Synchronization
import TestSupport

extension ScriptedHTTP {
  /// Creates a token endpoint that numbers its tokens.
  static func tokenServer() -> ScriptedHTTP {
    let issued = Mutex(0)
    return ScriptedHTTP { _ in
      let number = issued.withLock { count in
        count += 1
        return count
      }
      let body = #"{"access_token":"token-\#(number)","expires_in":3600,"token_type":"Bearer"}"#
      return OutboundResponse(status: 200, body: Array(body.utf8))
    }
  }
}
