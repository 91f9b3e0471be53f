import JSONText

#if !canImport(Darwin) && canImport(Runtime)
  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif
  import Dispatch
  import FlowControl
  import LibC
  import Runtime
  import Synchronization

  /// The places of call stacks in the author's source code, from this program's debug information.
  ///
  /// The toolchain's `llvm-symbolizer` reads the debug information: the module Runtime takes
  /// seconds for a program of this size. Without the tool, no place is known.
  enum SourcePlaces {
    /// The places found so far by the addresses of their stacks, for errors that recur.
    private static let found = BoundedCache<[UInt], String?>(countMax: 1_000)
    /// The threads of tasks must not wait for the tool, nor should several of it run at once.
    private static let queue = DispatchQueue(label: "hearth.source-places")
    private static let waiting = Atomic(0)
    private static let waitingMax = 8

    /// Returns the innermost place outside Hearth's libraries and the packages of a build.
    ///
    /// It has the form `FILE:LINE`. A new stack takes about 0.2 s, and at most 5 s. Nil if too many
    /// stacks are waiting.
    static func innermost(of stack: Backtrace, in images: ImageMap) async -> String? {
      // The program comes first; the system's libraries have no debug information.
      guard let program = images.first, let path = program.path,
        let start = UInt(program.baseAddress), let end = UInt(program.endOfText)
      else { return nil }
      let offsets = stack.frames.compactMap { frame in
        UInt(frame.adjustedProgramCounter).flatMap { start..<end ~= $0 ? $0 - start : nil }
      }
      guard !offsets.isEmpty else { return nil }
      if let known = found[offsets] { return known }
      guard waiting.add(1, ordering: .relaxed).newValue <= waitingMax else {
        waiting.subtract(1, ordering: .relaxed)
        return nil
      }
      let place = await withCheckedContinuation { continuation in
        queue.async {
          let location = locations(of: offsets, in: path).first(where: isAuthors)
          waiting.subtract(1, ordering: .relaxed)
          continuation.resume(returning: location.map { "\($0.FileName):\($0.Line)" })
        }
      }
      found[offsets] = .some(place)
      return place
    }

    /// A location in the output of `llvm-symbolizer`, with the tool's own names.
    private struct Location: Decodable {
      var FileName: String
      var Line: Int
    }

    private struct Resolved: Decodable {
      var Symbol: [Location]?
    }

    private static func isAuthors(_ location: Location) -> Bool {
      location.Line > 0 && location.FileName.hasPrefix("/")
        && !location.FileName.hasPrefix(librarySources)
        && !location.FileName.contains("/.build/checkouts/")
    }

    /// Returns the locations of code at offsets in a program, innermost first.
    ///
    /// Empty if there is no symbolizer or no debug information.
    private static func locations(of offsets: [UInt], in program: String) -> [Location] {
      let object = program.replacing("'", with: #"'\''"#)
      let addresses = offsets.map { "0x" + String($0, radix: 16) }.joined(separator: " ")
      let command =
        "exec timeout 5 llvm-symbolizer --output-style=JSON --obj='\(object)' \(addresses)"
      guard let pipe = popen(command + " 2>/dev/null", "r") else { return [] }
      var json = Data()
      var buffer = [UInt8](repeating: 0, count: 16 << 10)
      while case let count = fread(&buffer, 1, buffer.count, pipe), count > 0 {
        json.append(contentsOf: buffer[..<count])
      }
      guard pclose(pipe) == 0,
        // The output of another version of the tool is as good as none.
        let resolved = try? [Resolved](decodingJSON: json)
      else { return [] }
      return resolved.flatMap { $0.Symbol ?? [] }
    }

    /// The folder of Hearth's sources, from the path of this file.
    private static let librarySources: String = {
      // This file is three folders below.
      let folders = #filePath.split(separator: "/").dropLast(4)
      return "/" + folders.joined(separator: "/") + "/"
    }()
  }
#endif
