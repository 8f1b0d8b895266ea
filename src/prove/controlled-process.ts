import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** How a process ended. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** How to start a controlled process. */
export interface ControlOptions {
  args?: readonly string[]
  /** Flags for Node itself. */
  execArgv?: readonly string[]
  /** Added to the environment. */
  env?: NodeJS.ProcessEnv
  /** What to do with its standard error: keep its end for `stderr()` (the default), or write it to ours. */
  stderr?: 'keep' | 'inherit'
}

const mostStderr = 100_000

/** A Node process that exchanges messages with us, and that we can freeze, resume and kill. */
export class ControlledProcess<Message> {
  readonly pid: number
  /** Resolves when it has ended and all its messages have arrived. Never rejects. */
  readonly exited: Promise<Exit>
  onMessage: (message: Message) => void = () => {}
  readonly #child: ChildProcess
  #stderr = ''
  #hasExited = false

  constructor(program: string, { args = [], execArgv = [], env = {}, stderr = 'keep' }: ControlOptions = {}) {
    this.#child = fork(program, args, {
      env: { ...inheritedEnvironment(), ...env },
      execArgv: [...execArgv],
      stdio: ['ignore', 'ignore', stderr === 'keep' ? 'pipe' : 'inherit', 'ipc'],
    })
    this.pid = this.#child.pid as number
    this.exited = once(this.#child, 'close').then(([code, signal]) => {
      this.#hasExited = true
      return { code, signal }
    })
    this.#child.on('error', () => {}) // a message to a process that has just ended: `exited` reports it
    this.#child.on('message', (message: Message) => this.onMessage(message))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-mostStderr)
    })
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  /** The end of what it has written to standard error. */
  stderr(): string {
    return this.#stderr.trim()
  }

  send(message: object): void {
    this.#child.send(message, () => {})
  }

  /** Sends a signal. Resolves at once, but for SIGKILL only when the process has ended. */
  async kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): Promise<void> {
    if (this.#hasExited) return
    this.#child.kill(signal)
    if (signal === 'SIGKILL') await this.exited
  }
}

/** Our environment without the settings of Holdfast: a controlled process has its own. */
function inheritedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_')))
}
