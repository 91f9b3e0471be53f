import PackagePlugin
@main struct Tidy: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {}
}
