import TestSupport

/// The contents of one file: as processes see them, and as they are on the medium.
// Unchecked: protected by the disk's lock.
final class Inode: @unchecked Sendable {
  /// A change that may not have reached the medium yet.
  enum Change: Sendable {
    case write(offset: Int, [UInt8])
    case truncate(Int)
  }

  var current: [UInt8]
  private(set) var synced: [UInt8]
  private(set) var pending: [Change]
  /// All open handles of the file, for lock checks.
  var openFiles: [OpenFile] = []
  let shared = SharedMemory()
  private(set) var failedSyncs = 0

  init(current: [UInt8] = [], synced: [UInt8] = [], pending: [Change] = []) {
    self.current = current
    self.synced = synced
    self.pending = pending
  }

  func change(_ change: Change) {
    Self.apply(change, to: &current)
    pending.append(change)
  }

  func sync() {
    for change in pending { Self.apply(change, to: &synced) }
    pending = []
  }

  /// Fails a sync: some pending changes reach the medium, and the rest are lost.
  func failSync(using generator: inout SeededGenerator) {
    synced = afterPowerLoss(using: &generator)
    pending = []
    failedSyncs += 1
  }

  func damage(at offset: Int, bits: UInt8) {
    if offset < current.count { current[offset] ^= bits }
    if offset < synced.count { synced[offset] ^= bits }
  }

  private static func apply(_ change: Change, to bytes: inout [UInt8]) {
    switch change {
    case .truncate(let size):
      if size < bytes.count { bytes.removeLast(bytes.count - size) }
    case .write(let offset, let data):
      let end = offset + data.count
      if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
      bytes.withUnsafeMutableBytes { target in
        data.withUnsafeBytes { source in
          UnsafeMutableRawBufferPointer(rebasing: target[offset..<end]).copyMemory(from: source)
        }
      }
    }
  }
}

extension Inode {
  /// The pending changes that survive a power loss.
  private enum Sparing: CaseIterable {
    case none, all, prefix, changes, sectors
  }

  func afterPowerLoss(using generator: inout SeededGenerator) -> [UInt8] {
    var bytes = synced
    guard !pending.isEmpty else { return bytes }
    let sparing = Sparing.allCases.randomElement(using: &generator) ?? .none
    let sectorBytes = Bool.random(using: &generator) ? 512 : 4096
    let prefix = Int.random(in: 0..<pending.count, using: &generator)
    for (index, change) in pending.enumerated() {
      let isSpared =
        switch sparing {
        case .none: false
        case .all: true
        case .prefix: index < prefix
        case .changes, .sectors: Bool.random(using: &generator)
        }
      // The change at the end of a prefix was in progress, so it is torn.
      let isTorn = sparing == .sectors || sparing == .prefix && index == prefix
      switch change {
      case .write(let offset, let data) where isTorn:
        for sector in Self.sectors(offset, data, sectorBytes)
        where Bool.random(using: &generator) {
          Self.extend(&bytes, to: sector.offset, using: &generator)
          Self.apply(.write(offset: sector.offset, sector.data), to: &bytes)
        }
      case .write(let offset, _) where isSpared:
        Self.extend(&bytes, to: offset, using: &generator)
        Self.apply(change, to: &bytes)
      case .truncate where isSpared: Self.apply(change, to: &bytes)
      default: break
      }
    }
    // A file's size may be safe although the bytes by which it grew are not.
    if Int.random(in: 0..<4, using: &generator) == 0 {
      Self.extend(&bytes, to: current.count, using: &generator)
    }
    return bytes
  }

  private static func extend(
    _ bytes: inout [UInt8],
    to size: Int,
    using generator: inout SeededGenerator
  ) {
    guard bytes.count < size else { return }
    let filler = Bool.random(using: &generator) ? 0 : UInt8(truncatingIfNeeded: generator.next())
    bytes += [UInt8](repeating: filler, count: size - bytes.count)
  }

  private static func sectors(
    _ offset: Int,
    _ data: [UInt8],
    _ sectorBytes: Int
  ) -> [(offset: Int, data: [UInt8])] {
    var sectors: [(offset: Int, data: [UInt8])] = []
    var start = offset
    let end = offset + data.count
    while start < end {
      let stop = min((start / sectorBytes + 1) * sectorBytes, end)
      sectors.append((start, Array(data[start - offset..<stop - offset])))
      start = stop
    }
    return sectors
  }
}
