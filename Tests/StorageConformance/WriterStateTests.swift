import StorageEngine
import Testing

@testable import SQLiteStorage

@Suite("The writer's decisions")
struct WriterStateTests {
  private func submission(_ bytes: Int = 1) -> GroupWriter.Submission {
    GroupWriter.Submission(
      batch: StorageBatch(),
      expecting: [],
      durability: .synced,
      completion: { _ in },
      bytes: bytes
    )
  }

  @Test("The first batch starts a group; batches that arrive during it wait for the next")
  func groupsWhatWaits() {
    var waiting = WaitingBatches()
    let first = waiting.add(submission())
    let firstGroup = waiting.takeGroup()
    let others = [waiting.add(submission()), waiting.add(submission())]

    let isIdleWhileRunning = waiting.isIdle
    let hasMore = waiting.groupEnded()
    let secondGroup = waiting.takeGroup()
    let hasEvenMore = waiting.groupEnded()
    let isIdleAfterwards = waiting.isIdle
    let later = waiting.add(submission())

    #expect(first.isFirst && others.allSatisfy { !$0.isFirst })
    #expect(firstGroup.count == 1)
    #expect(!isIdleWhileRunning && hasMore)
    #expect(secondGroup.count == 2)
    #expect(!hasEvenMore && isIdleAfterwards)
    #expect(later.isFirst)
  }

  @Test("A group is bounded in batches and bytes, but has at least one batch")
  func groupsAreBounded() {
    var many = WaitingBatches()
    for _ in 0..<GroupWriter.groupBatchesMax + 10 { _ = many.add(submission()) }
    var large = WaitingBatches()
    for _ in 0..<3 { _ = large.add(submission(GroupWriter.groupBytesMax * 2 / 3)) }
    var huge = WaitingBatches()
    for _ in 0..<2 { _ = huge.add(submission(GroupWriter.groupBytesMax * 2)) }

    let manyCounts = [many.takeGroup().count, many.takeGroup().count]
    let largeCounts = [large.takeGroup().count, large.takeGroup().count, large.takeGroup().count]
    let hugeCounts = [huge.takeGroup().count, huge.takeGroup().count]

    #expect(manyCounts == [GroupWriter.groupBatchesMax, 10])
    #expect(largeCounts == [1, 1, 1])
    #expect(hugeCounts == [1, 1])
  }

  @Test("A runaway is refused, and so is everyone after the close")
  func refusesBeyondTheBound() {
    var waiting = WaitingBatches()
    for _ in 0..<GroupWriter.waitingBatchesMax { _ = waiting.add(submission()) }
    let refused = waiting.add(submission())
    _ = waiting.takeGroup()
    let accepted = waiting.add(submission())
    waiting.isClosed = true
    let late = waiting.add(submission())

    #expect(refused.refusal?.kind == .full)
    #expect(accepted.refusal == nil)
    #expect(late.refusal?.kind == .closed)
  }

  @Test("A checkpoint starts at the bound, one at a time, and again when the log goes on growing")
  func schedulesCheckpoints() {
    let bound = 1000
    var schedule = CheckpointSchedule(pagesMax: bound)
    let step = schedule.pagesStep
    // Each row: the pages in the log after a commit, and true if a checkpoint must start.
    let whileRunning = [(bound - 1, false), (bound, true), (bound + step, false)]
    let whileGrowing = [(bound + step + 1, false), (bound + 2 * step, true)]
    let afterRestart = [(10, false), (bound - 1, false), (bound, true)]
    for rows in [whileRunning, whileGrowing, afterRestart] {
      for (pages, starts) in rows {
        let answer = schedule.groupEnded(logPages: pages)
        #expect(answer == starts, "at \(pages)")
      }
      schedule.checkpointEnded()
    }
  }
}
