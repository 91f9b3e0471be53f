import FunctionsRuntime

import Foundation
import LibC

/// Callables that harm their worker as a faulty function could.
struct SampleFaults: Sendable {
  struct Fill: Codable, Sendable {
    var mebibytes: Int
    /// True to fill the memory of a child process instead.
    var inChild: Bool?
  }

  /// Allocates the requested memory and returns if that succeeds.
  var fillMemory: OnCall<Fill, Int> {
    .init("fillMemory") { request in
      if request.data.inChild == true {
        let bytes = request.data.mebibytes << 20
        let program = "head -c \(bytes) /dev/zero | tail -c \(bytes) | tail -c \(bytes) > /dev/null"
        return Int(shell(program))
      }
      var blocks: [[UInt8]] = []
      for _ in 0..<request.data.mebibytes {
        blocks.append(Array(repeating: UInt8.random(in: 1...255), count: 1 << 20))
      }
      return blocks.reduce(0) { $0 + $1.count } >> 20
    }
  }

  struct Trap: Codable, Sendable {
    /// The kind of trap: `fatalError`, `index`, `unwrap`, `overflow`, `abort`, or `none` to wait.
    var kind: String
  }

  /// Crashes with the requested kind of trap.
  var trap: OnCall<Trap, Int> {
    .init("trap") { request in
      let empty: [Int] = []
      switch request.data.kind {
      case "index": return empty[request.data.kind.count]
      case "unwrap":
        // swift-format-ignore: NeverForceUnwrap
        return empty.first!
      case "overflow": return request.data.kind.count + Int.max
      case "abort": abort()
      case "none":
        request.logger.info("Begun")
        try await Task.sleep(for: .seconds(3600))
        return 0
      default: fatalError("trapped as asked")
      }
    }
  }

  struct Leave: Codable, Sendable {
    var status: Int32
  }

  /// Ends the process with `exit`.
  var leave: OnCall<Leave, Bool> {
    .init("leave") { exit($0.data.status) }
  }

  struct Block: Codable, Sendable {
    /// True to spin instead of sleeping.
    var spins: Bool?
    /// True to block all threads of the task pool and not only one.
    var all: Bool?
  }

  /// Blocks threads of the task pool forever, ignoring cancellation.
  var block: OnCall<Block, Bool> {
    .init("block", options: .init(timeout: .seconds(2))) { request in
      request.logger.info("Begun")
      let spins = request.data.spins == true
      if request.data.all == true {
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<64 { group.addTask { stayForever(spins: spins) } }
        }
      }
      stayForever(spins: spins)
      return true
    }
  }

  struct Offspring: Codable, Sendable {
    /// True if the child leaves the worker's session.
    var leavesSession: Bool?
    /// True if the worker exits without a result once the child runs.
    var crashes: Bool?
  }

  /// Starts a process that outlives the call, and returns its process ID.
  ///
  /// The child inherits everything from the worker, including its outputs.
  var offspring: OnCall<Offspring, Int32> {
    .init("offspring") { request in
      let path = "/tmp/hearth-offspring-\(getpid())-\(UInt32.random(in: 0 ... .max))"
      let session = request.data.leavesSession == true ? "setsid " : ""
      start("\(session)sh -c 'echo $$ > \(path).new; mv \(path).new \(path); exec sleep 600' &")
      defer { unlink(path) }
      var child: Int32?
      while child == nil {
        // The file appears in one step, by renaming; until then there is nothing to read.
        child = (try? String(contentsOfFile: path, encoding: .utf8))
          .flatMap { Int32($0.split(separator: "\n").first ?? "") }
        usleep(1000)
      }
      print("offspring \(child ?? 0)")
      if request.data.crashes == true { _exit(3) }
      return child ?? 0
    }
  }

  struct Noise: Codable, Sendable {
    var mebibytes: Int
  }

  /// Writes the requested number of mebibytes to standard output without a newline.
  var noise: OnCall<Noise, Int> {
    .init("noise") { request in
      let block: [UInt8] = Array(repeating: UInt8(ascii: "x"), count: 1 << 20)
      for _ in 0..<request.data.mebibytes {
        var rest = block[...]
        while !rest.isEmpty {
          let count = rest.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
          if count > 0 { rest = rest.dropFirst(count) }
        }
      }
      return request.data.mebibytes
    }
  }

  struct Close: Codable, Sendable {
    var descriptors: [Int32]
  }

  /// Closes descriptors, such as the standard streams, and returns how many it closed.
  var closeStreams: OnCall<Close, Int> {
    .init("closeStreams") { request in
      request.data.descriptors.count { close($0) == 0 }
    }
  }

  /// Opens files until the system refuses, and returns how many it opened.
  var leakDescriptors: OnCall<FirestoreValue, Int> {
    .init("leakDescriptors", options: .init(timeout: .seconds(2))) { _ in
      var count = 0
      while open("/dev/null", O_RDONLY) >= 0 { count += 1 }
      return count
    }
  }

  /// Takes over the worker's own address and never responds there.
  var usurp: OnCall<FirestoreValue, Bool> {
    .init("usurp", options: .init(timeout: .seconds(2))) { _ in
      let path = ProcessInfo.processInfo.environment["HEARTH_SOCKET"] ?? ""
      return SampleOddWorker.listen(at: path) >= 0
    }
  }

  /// Changes the working directory and returns the current one.
  var changeFolder: OnCall<String, String> {
    .init("changeFolder") { request in
      _ = chdir(request.data)
      return FileManager.default.currentDirectoryPath
    }
  }

  /// Returns the values of environment variables, with `-` for unset ones; declares a secret.
  var variables: OnCall<[String], [String]> {
    .init("variables", options: .init(secrets: ["SAMPLE_SECRET"])) { request in
      request.data.map { ProcessInfo.processInfo.environment[$0] ?? "-" }
    }
  }

  /// Returns the values of environment variables, with `-` for unset ones; declares no secret.
  var plainVariables: OnCall<[String], [String]> {
    .init("plainVariables") { request in
      request.data.map { ProcessInfo.processInfo.environment[$0] ?? "-" }
    }
  }

  /// All sample functions of this type.
  @FunctionsBuilder var all: [FunctionDefinition] {
    fillMemory
    trap
    leave
    block
    offspring
    noise
    closeStreams
    leakDescriptors
    usurp
    changeFolder
    variables
    plainVariables
  }
}

/// Blocks its thread forever.
private func stayForever(spins: Bool) {
  var turns: UInt64 = 0
  while true {
    // This sample is a function that blocks its thread.
    if spins { turns &+= 1 } else { sleep(3600) }
  }
}

/// Starts a shell command; waiting for it also waits for every process that it leaves behind.
@discardableResult
private func start(_ command: String) -> Process? {
  let process = Process()
  process.executableURL = URL(filePath: "/bin/sh")
  process.arguments = ["-c", command]
  // A sample needs no error handling here: a failed start returns nil.
  return (try? process.run()).map { process }
}

/// Runs a command and returns its exit status.
private func shell(_ command: String) -> Int32 {
  guard let process = start(command) else { return -1 }
  process.waitUntilExit()
  return process.terminationStatus
}
