import StorageEngine

/// Who should have which shard: a value that decides and never acts.
///
/// Dispatchers need no common clock: one takes another for gone when its row has not changed for so
/// many of its own beats.
struct ClaimPlan: Sendable {
  /// What storage says of claims and dispatchers.
  struct Board: Sendable {
    /// The version of each dispatcher's row, by the dispatcher's id.
    var dispatchers: [String: UInt64] = [:]
    /// The owner and the version of each shard's row.
    var shards: [Shard: (owner: String, version: UInt64)] = [:]
  }

  /// What to write.
  struct Moves: Sendable, Equatable {
    /// Shards to claim, with the version that their row must have; nil for none.
    var claims: [Shard: UInt64?] = [:]
    /// Shards to give up for another dispatcher, once nothing of them runs.
    var releases: Set<Shard> = []
    /// Dispatchers that are gone.
    var gone: Set<String> = []
  }

  let id: String
  /// The beats without a sign after which a dispatcher counts as gone.
  static let silentBeatsMax = 4
  private var seen: [String: (version: UInt64, silentBeats: Int)] = [:]

  init(id: String) {
    self.id = id
  }

  /// Decides, once a beat.
  mutating func beat(_ board: Board) -> Moves {
    for (other, version) in board.dispatchers where other != id {
      if let known = seen[other], known.version == version {
        seen[other]?.silentBeats += 1
      } else {
        seen[other] = (version, 0)
      }
    }
    seen = seen.filter { board.dispatchers[$0.key] != nil }
    let gone = Set(seen.filter { $0.value.silentBeats >= Self.silentBeatsMax }.keys)
    let members = ([id] + seen.keys.filter { !gone.contains($0) }).sorted()
    var moves = Moves(gone: gone)
    for shard in Shard.all + [.expansion] {
      let wanted = members[Int(shard.number) % members.count]
      let row = board.shards[shard]
      if row?.owner == id {
        if wanted != id { moves.releases.insert(shard) }
      } else if wanted == id, row.map({ !members.contains($0.owner) }) ?? true {
        moves.claims[shard] = .some(row?.version)
      }
    }
    return moves
  }
}
