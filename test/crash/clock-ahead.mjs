// Sets the clock of a process six minutes ahead, like that of a badly maintained host. Loaded with --import, before everything else.
const aheadMs = 360_000
const RealDate = globalThis.Date

globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + aheadMs] : args))
  }

  static now() {
    return RealDate.now() + aheadMs
  }
}
