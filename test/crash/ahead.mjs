// Puts the clock of a process six minutes ahead, as that of a badly kept host is. Loaded before all else with --import.
const aheadMs = 360_000
const Right = globalThis.Date

globalThis.Date = class extends Right {
  constructor(...given) {
    super(...(given.length === 0 ? [Right.now() + aheadMs] : given))
  }

  static now() {
    return Right.now() + aheadMs
  }
}
