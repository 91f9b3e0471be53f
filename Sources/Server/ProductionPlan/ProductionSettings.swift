/// The settings of a Google project, beside what the functions' manifest says.
package struct ProductionSettings: Sendable, Hashable {
  /// The project's ID; nil if whoever applies the files names it.
  package var project: String?
  /// The region of the image, and of functions that name no other.
  package var region: String
  /// The location of Firestore and of its triggers: a region, or `nam5` or `eur3`.
  package var firestoreLocation: String
  /// The CPUs of each instance; nil for the fewest that Cloud Run allows for the memory.
  package var cpu: Double?
  /// The variables of every function, without secrets.
  package var environment: [String: String]
  /// Firestore's security rules; nil if there are none.
  package var rules: String?
  /// The indexes of the database `(default)`.
  package var indexes: FirestoreIndexes
  /// The executable product that the image is built from; nil if the package has only one.
  package var product: String?
  /// The path from the generated folder to the folder of the package.
  package var sourcePath: String
  /// The path of the Dockerfile, relative to the generated folder.
  package var dockerfilePath: String

  /// Creates settings; those without a default have to be chosen.
  package init(
    project: String? = nil,
    region: String = "us-central1",
    firestoreLocation: String? = nil,
    cpu: Double? = nil,
    environment: [String: String] = [:],
    rules: String? = nil,
    indexes: FirestoreIndexes = FirestoreIndexes(),
    product: String? = nil,
    sourcePath: String = "..",
    dockerfilePath: String = "Dockerfile"
  ) {
    self.project = project
    self.region = region
    self.firestoreLocation = firestoreLocation ?? region
    self.cpu = cpu
    self.environment = environment
    self.rules = rules
    self.indexes = indexes
    self.product = product
    self.sourcePath = sourcePath
    self.dockerfilePath = dockerfilePath
  }
}
