import CSQLite
import LibC
import Synchronization
package import TestSupport

/// An in-memory disk below one data folder that loses power, fails or fills up on demand.
///
/// A store opened in `folder` with `vfsName` keeps its database here; only its lock file is in the
/// real folder. A write is visible to all connections at once but safe only after a sync, as on a
/// real disk. A power loss keeps some unsynced sectors and loses others.
package final class SimulatedDisk: Sendable {
  /// SQLite's name of the simulated file system.
  package static let vfsName = SimulatedFileSystem.name

  /// The data folder that the disk replaces.
  package let folder: String
  let state: Mutex<DiskState>

  /// Creates an empty disk for `folder`, replacing any other disk there.
  package convenience init(folder: String) {
    self.init(folder: folder, state: DiskState())
  }

  private init(folder: String, state: DiskState) {
    self.folder = folder
    self.state = Mutex(state)
    SimulatedFileSystem.mount(self)
  }

  deinit {
    SimulatedFileSystem.unmount(folder)
  }

  // MARK: Power loss and process kills

  /// Loses power at the `count`th change from now.
  ///
  /// That change may be half done, and nothing works after it.
  package func losePower(afterChanges count: Int) {
    state.withLock { $0.changesLeft = count }
  }

  /// Loses power now, if it is not already lost.
  package func losePower() {
    state.withLock { $0.isDead = true }
  }

  /// True if the power is lost.
  package var isDead: Bool { state.withLock { $0.isDead } }

  /// The number of writes, syncs and other changes so far.
  package var changes: Int { state.withLock { $0.changes } }

  /// Returns the disk as found when power is back; this one stays dead.
  ///
  /// Synced content survives. Of the rest the generator decides for each file: all, none, an
  /// ordered prefix, or single sectors of 512 or 4096 bytes, with zeros or garbage where a file
  /// grew.
  package func afterPowerLoss(using generator: inout SeededGenerator) -> SimulatedDisk {
    let survived = state.withLock { state in
      state.isDead = true
      return state.afterPowerLoss(using: &generator)
    }
    return SimulatedDisk(folder: folder, state: survived)
  }

  /// Returns the disk as found by the next process after this one was killed; this one stays dead.
  ///
  /// Everything written is there, but what was not synced can still be lost.
  package func afterKill() -> SimulatedDisk {
    let survived = state.withLock { state in
      state.isDead = true
      return state.afterKill()
    }
    return SimulatedDisk(folder: folder, state: survived)
  }

  // MARK: Faults

  /// Fails the accesses that `fault` describes, until `heal`.
  package func fail(_ fault: DiskFault) {
    state.withLock { $0.faults.append(fault) }
  }

  /// Limits the total size of all files; nil removes the limit.
  package func limit(bytes: Int?) {
    state.withLock { $0.bytesMax = bytes }
  }

  /// Ends all faults and the size limit; existing damage stays.
  package func heal() {
    state.withLock { state in
      state.faults = []
      state.bytesMax = nil
    }
  }

  /// Flips bits of a file at an offset, as a worn medium does.
  package func damage(_ file: String, at offset: Int, bits: UInt8) {
    state.withLock { state in
      state.files[file]?.damage(at: offset, bits: bits)
    }
  }

  /// The total size of all files.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// Returns the size of a file; nil if it does not exist.
  package func bytes(of file: String) -> Int? {
    state.withLock { $0.files[file]?.current.count }
  }
}

/// A set of file accesses that fail.
package struct DiskFault: Sendable {
  /// The kinds of access that can fail.
  package enum Access: Sendable {
    case read, write, sync, truncate, open
  }

  var access: Access
  var suffix: String
  var skipped: Int
  var count: Int
  var number: Int32

  /// Fails `count` accesses to files whose names end in `suffix`, with the system error `number`.
  ///
  /// The first `skipped` accesses succeed. A failed sync behaves as on Linux: the data that it
  /// should have saved may be lost and can still be read. Each handle that is open at that time
  /// reports the error once; handles opened later do not.
  package init(
    _ access: Access,
    suffix: String = "",
    after skipped: Int = 0,
    count: Int = .max,
    number: Int32 = EIO
  ) {
    self.access = access
    self.suffix = suffix
    self.skipped = skipped
    self.count = count
    self.number = number
  }

  /// Indicates whether this access fails, and counts it.
  mutating func strikes(_ access: Access, _ file: String) -> Bool {
    guard access == self.access, file.hasSuffix(suffix), count > 0 else { return false }
    guard skipped == 0 else {
      skipped -= 1
      return false
    }
    count -= 1
    return true
  }
}
