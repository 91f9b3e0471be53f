import Foundation
import LibC
import StatusCodes

/// Access to files of an export, which may come from someone else.
///
/// Only regular files are read: opening a pipe would wait for a writer, and a device may never end.
enum RegularFile {
  /// Opens a file for reading; the caller closes the descriptor.
  ///
  /// Throws `NOT_FOUND` or `INVALID_ARGUMENT` naming the file.
  static func open(_ path: String) throws(StatusError) -> CInt {
    let descriptor = LibC.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw DiskError.reading(path) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw .invalidArgument("\(path) is not a regular file.")
    }
    return descriptor
  }

  /// Returns the contents of a file of at most `bytesMax` bytes.
  ///
  /// Throws `NOT_FOUND`, or `INVALID_ARGUMENT` for a larger file, before any of it is read.
  static func contents(of path: String, bytesMax: Int) throws(StatusError) -> [UInt8] {
    let descriptor = try open(path)
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, Int(status.st_size) <= bytesMax else {
      throw .invalidArgument("\(path) has more than \(bytesMax >> 20) MiB.")
    }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    // The file may have become shorter since.
    let filled = try fill(&bytes, from: descriptor, of: path)
    bytes.removeLast(bytes.count - filled)
    return bytes
  }

  /// Reads until the bytes are full or the file ends, and returns the number of bytes read.
  static func fill(
    _ bytes: inout [UInt8],
    from descriptor: CInt,
    of path: String
  ) throws(StatusError) -> Int {
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes {
        read(descriptor, $0.baseAddress?.advanced(by: filled), $0.count - filled)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw DiskError.reading(path)
      }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Throws unless a file is in a folder also where links on the way are followed.
  static func check(_ path: String, isIn folder: String) throws(StatusError) {
    let root = URL(filePath: folder).resolvingSymlinksInPath().path
    let file = URL(filePath: path).resolvingSymlinksInPath().path
    guard file.hasPrefix(root.hasSuffix("/") ? root : root + "/") else {
      throw .invalidArgument("\(path) leads out of the folder \(folder) by a link.")
    }
  }
}
