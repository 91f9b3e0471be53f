/// The origin of a functions binary.
package enum FunctionsSource: Sendable, Hashable {
  /// A Swift package at an absolute path.
  ///
  /// If `product` is nil, the package's only executable product is used. `configuration` is
  /// SwiftPM's: `debug` or `release`.
  case package(path: String, product: String?, configuration: String)
  /// A prebuilt binary; `.env` files are read from `folder`.
  case executable(path: String, folder: String)

  package var folder: String {
    switch self {
    case .package(let path, _, _): path
    case .executable(_, let folder): folder
    }
  }
}
