/// Where a functions binary comes from.
package enum FunctionsSource: Sendable, Hashable {
  /// A Swift package, by absolute path; nil takes the package's only executable product.
  ///
  /// `configuration` is SwiftPM's: `debug` or `release`.
  case package(path: String, product: String?, configuration: String)
  /// A binary that somebody else built; `.env` files are read from `folder`.
  case executable(path: String, folder: String)

  /// The folder with the `.env` files.
  package var folder: String {
    switch self {
    case .package(let path, _, _): path
    case .executable(_, let folder): folder
    }
  }
}
