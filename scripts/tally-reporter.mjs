import { writeFileSync } from 'node:fs'

/** Counts how the tests ended, for the last line of `npm test`. */
export default class TallyReporter {
  onTestRunEnd(modules, errors) {
    const file = process.env.HOLDFAST_TALLY_FILE
    if (!file) return
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const ended = (state) => tests.filter((test) => test.result().state === state).length
    // A file that cannot be loaded, or a hook that throws, fails without any test of its own having failed.
    const broken = modules.filter((module) => module.state() === 'failed' && !hasFailedTest(module)).length
    writeFileSync(file, JSON.stringify({ passed: ended('passed'), failed: ended('failed') + broken + errors.length }))
  }
}

function hasFailedTest(module) {
  return [...module.children.allTests('failed')].length > 0
}
