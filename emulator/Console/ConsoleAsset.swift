import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore

/// A file of the console's page, which is part of the program.
struct ConsoleAsset: Sendable {
  private let bytes: [UInt8]
  private let mediaType: String
  private let entityTag: String

  private init(_ bytes: [UInt8], _ mediaType: String) {
    self.bytes = bytes
    self.mediaType = mediaType
    entityTag = "\"\(Self.hash(bytes))\""
  }

  /// Returns the file at a path; nil if there is none.
  static func named(_ path: String) -> ConsoleAsset? { all[path == "/" ? "/index.html" : path] }

  /// The files by path.
  private static let all: [String: ConsoleAsset] = [
    "/index.html": ConsoleAsset(PackageResources.index_html, "text/html; charset=utf-8"),
    "/style.css": ConsoleAsset(PackageResources.style_css, "text/css; charset=utf-8"),
    "/icon.svg": ConsoleAsset(PackageResources.icon_svg, "image/svg+xml"),
    "/api.js": ConsoleAsset(PackageResources.api_js, script),
    "/app.js": ConsoleAsset(PackageResources.app_js, script),
    "/auth.js": ConsoleAsset(PackageResources.auth_js, script),
    "/columns.js": ConsoleAsset(PackageResources.columns_js, script),
    "/database.js": ConsoleAsset(PackageResources.database_js, script),
    "/decisions.js": ConsoleAsset(PackageResources.decisions_js, script),
    "/document.js": ConsoleAsset(PackageResources.document_js, script),
    "/dom.js": ConsoleAsset(PackageResources.dom_js, script),
    "/entries.js": ConsoleAsset(PackageResources.entries_js, script),
    "/events.js": ConsoleAsset(PackageResources.events_js, script),
    "/firestore.js": ConsoleAsset(PackageResources.firestore_js, script),
    "/flags.js": ConsoleAsset(PackageResources.flags_js, script),
    "/format.js": ConsoleAsset(PackageResources.format_js, script),
    "/function-stats.js": ConsoleAsset(PackageResources.function_stats_js, script),
    "/functions.js": ConsoleAsset(PackageResources.functions_js, script),
    "/home.js": ConsoleAsset(PackageResources.home_js, script),
    "/live-table.js": ConsoleAsset(PackageResources.live_table_js, script),
    "/logs.js": ConsoleAsset(PackageResources.logs_js, script),
    "/long-text.js": ConsoleAsset(PackageResources.long_text_js, script),
    "/rules.js": ConsoleAsset(PackageResources.rules_js, script),
    "/time.js": ConsoleAsset(PackageResources.time_js, script),
    "/user-picker.js": ConsoleAsset(PackageResources.user_picker_js, script),
    "/values.js": ConsoleAsset(PackageResources.values_js, script),
    "/vectors.js": ConsoleAsset(PackageResources.vectors_js, script),
    "/virtual-list.js": ConsoleAsset(PackageResources.virtual_list_js, script),
  ]

  private static let script = "text/javascript; charset=utf-8"

  /// Returns the file, or 304 if the browser has this version.
  func response(to request: Request) -> Response {
    var headers: HTTPFields = [
      // The browser asks each time, so a new version of the suite is seen at once.
      .contentType: mediaType, .cacheControl: "no-cache", .eTag: entityTag,
    ]
    guard request.headers[.ifNoneMatch] != entityTag else {
      return Response(status: .notModified, headers: headers)
    }
    headers[.contentLength] = "\(bytes.count)"
    return Response(status: .ok, headers: headers, body: .whole(ByteBuffer(bytes: bytes)))
  }

  /// The 64-bit FNV-1a hash of the bytes, in hexadecimal.
  private static func hash(_ bytes: [UInt8]) -> String {
    String(bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }, radix: 16)
  }
}
