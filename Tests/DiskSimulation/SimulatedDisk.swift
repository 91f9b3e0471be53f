import CSQLite
import Synchronization
package import TestSupport

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The disk under one data folder, in memory: it loses power, fails and fills up when told to.
///
/// A store opened in `folder` with `vfsName` keeps its database here instead of in the real folder,
/// where only its lock lies. What was written is seen by all at once, but is safe only after a
/// sync, as on a real machine: of anything else a loss of power keeps some sectors and not others.
package final class SimulatedDisk: Sendable {
  /// SQLite's name for file systems of this kind.
  package static let vfsName = SimulatedFileSystem.name

  /// The data folder that the disk stands for.
  package let folder: String
  let state: Mutex<DiskState>

  /// An empty disk for `folder`, which takes the place of another one's there.
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

  // MARK: Ends

  /// Loses power at the `count`th change from now: it may be half done, and nothing works after it.
  package func losePower(afterChanges count: Int) {
    state.withLock { $0.changesLeft = count }
  }

  /// Loses power now, if it has not already.
  package func losePower() {
    state.withLock { $0.isDead = true }
  }

  /// Whether the power is gone.
  package var isDead: Bool { state.withLock { $0.isDead } }

  /// Writes, syncs and the like so far.
  package var changes: Int { state.withLock { $0.changes } }

  /// The disk as the machine finds it when power is back; this one stays dead.
  ///
  /// Synced content is there. Of the rest the generator decides, file by file: all, none, a part
  /// in order or single sectors of 512 or 4096 bytes, with zeros or rubbish where a file grew.
  package func afterPowerLoss(using generator: inout SeededGenerator) -> SimulatedDisk {
    let survived = state.withLock { state in
      state.isDead = true
      return state.afterPowerLoss(using: &generator)
    }
    return SimulatedDisk(folder: folder, state: survived)
  }

  /// The disk as the next process finds it after this one was killed: everything written is there,
  /// and what was not synced can still be lost; this one stays dead.
  package func afterKill() -> SimulatedDisk {
    let survived = state.withLock { state in
      state.isDead = true
      return state.afterKill()
    }
    return SimulatedDisk(folder: folder, state: survived)
  }

  // MARK: Faults

  /// Fails accesses as `fault` says, until `heal`.
  package func fail(_ fault: DiskFault) {
    state.withLock { $0.faults.append(fault) }
  }

  /// Bounds all files together; nil for a disk without end.
  package func limit(bytes: Int?) {
    state.withLock { $0.bytesMax = bytes }
  }

  /// Ends all faults and the limit; what they broke stays broken.
  package func heal() {
    state.withLock { state in
      state.faults = []
      state.bytesMax = nil
    }
  }

  /// Flips bits of a file at an offset, as worn media do.
  package func damage(_ file: String, at offset: Int, bits: UInt8) {
    state.withLock { state in
      state.files[file]?.damage(at: offset, bits: bits)
    }
  }

  /// The size of all files.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// The size of a file, nil when there is none.
  package func bytes(of file: String) -> Int? {
    state.withLock { $0.files[file]?.current.count }
  }
}

/// Accesses that fail.
package struct DiskFault: Sendable {
  /// What can fail.
  package enum Access: Sendable {
    case read, write, sync, truncate, open
  }

  var access: Access
  var suffix: String
  var skipped: Int
  var count: Int
  var number: Int32

  /// Fails `count` accesses to files whose names end in `suffix`, after letting `skipped` pass,
  /// with the system's error `number`.
  ///
  /// A failed sync behaves as Linux does: what it should have made safe may be lost and is still
  /// read. Everyone who has the file open is told by one sync; later ones know nothing of it.
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

  /// Whether this access fails.
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
