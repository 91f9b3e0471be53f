import Foundation

/// A flat scan of the same vectors with NumPy, where NumPy is installed.
///
/// This is the solution that most people try first.
struct NumPyScan: Sendable {
  private let python: String

  /// Returns nil if the virtual environment does not contain NumPy; `make bench` installs it.
  init?(environment folder: String) {
    python = folder + "/bin/python"
    // If the folder does not exist, NumPy is not installed.
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: folder + "/lib")) ?? []
    guard FileManager.default.isExecutableFile(atPath: python),
      versions.contains(where: {
        FileManager.default.fileExists(atPath: "\(folder)/lib/\($0)/site-packages/numpy")
      })
    else { return nil }
  }

  /// The milliseconds of each query and the rows of its ten best matches.
  struct Answers: Sendable, Decodable {
    var all: [Double]
    var filtered: [Double]
    var allRows: [[Int]]
    var filteredRows: [[Int]]
  }

  private static let source = """
    import json, sys, time
    import numpy

    rows, queries, dimension, scale, chats = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

    def read(path):
        matrix = numpy.fromfile(path, dtype=numpy.int16).reshape(-1, dimension)
        matrix = matrix.astype(numpy.float32) / numpy.float32(scale)
        return matrix / numpy.linalg.norm(matrix, axis=1, keepdims=True)

    def best(scores):
        top = numpy.argpartition(scores, -10)[-10:]
        return top[numpy.argsort(-scores[top])]

    matrix, queries = read(rows), read(queries)
    chat = numpy.arange(len(matrix)) % chats
    result = {"all": [], "filtered": [], "allRows": [], "filteredRows": []}
    for warm in (True, False):
        for number, query in enumerate(queries):
            began = time.perf_counter()
            found = best(matrix @ query)
            middle = time.perf_counter()
            rows = numpy.flatnonzero(chat == number % chats)
            kept = rows[best(matrix[rows] @ query)]
            end = time.perf_counter()
            if warm:
                if number == 4:
                    break
                continue
            result["all"].append((middle - began) * 1000)
            result["filtered"].append((end - middle) * 1000)
            result["allRows"].append(found.tolist())
            result["filteredRows"].append(kept.tolist())
    print(json.dumps(result), flush=True)

    """

  /// Runs each query against the matrix of unit rows in memory.
  func run(_ set: VectorSet, in folder: String) async throws -> Answers {
    let folder = folder + "/numpy"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer {
      // The whole data folder is removed at the end; this only frees much space earlier.
      try? FileManager.default.removeItem(atPath: folder)
    }
    try Self.source.write(toFile: folder + "/scan.py", atomically: true, encoding: .utf8)
    for (name, numbers) in [("rows", set.numbers), ("queries", set.queryNumbers)] {
      try numbers.withUnsafeBytes { bytes in
        try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
      }
    }
    let command = ServedProcess.Command(
      executable: python,
      arguments: [
        "scan.py", "rows", "queries", "\(set.dimension)", "\(Int(VectorSet.scale))",
        "\(VectorSet.chats)",
      ],
      folder: folder
    )
    return try await ServedProcess.run(command) { line in
      line.hasPrefix("{") ? try JSONDecoder().decode(Answers.self, from: Data(line.utf8)) : nil
    } body: { _, answers in
      answers
    }
  }
}
