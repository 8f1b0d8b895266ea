import { Member } from './member.ts'

/** Processes that are started ahead, because starting one takes longer than most recoveries. */
export class MemberPool {
  readonly #spare: number
  readonly #idle: Member[] = []
  readonly #all = new Set<Member>()
  #isClosed = false

  /** Keeps so many processes ready. */
  constructor(spare: number) {
    this.#spare = spare
    // none of them may outlive the prover, not even a frozen one
    process.once('exit', this.#killAll)
    this.#refill()
  }

  async take(): Promise<Member> {
    const member = this.#idle.shift() ?? this.#spawn()
    this.#refill()
    await member.ready
    return member.hasExited ? this.take() : member
  }

  /** Takes back a process that was stopped cleanly and can be used again. */
  giveBack(member: Member): void {
    member.onReport = () => {}
    if (this.#idle.length < 2 * this.#spare && !member.hasExited) this.#idle.push(member)
    else void member.kill('SIGKILL')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    process.off('exit', this.#killAll)
    this.#killAll()
    await Promise.all([...this.#all].map((member) => member.exited))
  }

  #refill(): void {
    while (!this.#isClosed && this.#idle.length < this.#spare) this.#idle.push(this.#spawn())
  }

  #spawn(): Member {
    const member = new Member()
    this.#all.add(member)
    void member.exited.then(() => this.#all.delete(member))
    return member
  }

  readonly #killAll = (): void => {
    for (const member of this.#all) void member.kill('SIGKILL')
  }
}
