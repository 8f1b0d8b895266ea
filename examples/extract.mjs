// The sample that `holdfast dev` runs: a kind with two stages that reads the documents next to this file.
//   fields   finds number, date, total, currency and parties; its output is readable before the next stage starts
//   places   finds where each of them appears in the document; it is optional: the fields alone are still useful
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { defineJob, PermanentError } from 'holdfast'
import { z } from 'zod'

const folder = new URL('./documents/', import.meta.url)

export const extract = defineJob('extract', {
  input: z.object({
    document: z.string().regex(/^[\w-]+\.txt$/, 'must be the name of a .txt file in examples/documents'),
    /** The second stage takes at least this long: real documents are slow, and may lose their worker halfway. */
    seconds: z.number().min(0).max(600).default(0),
  }),
  stages: [
    { name: 'fields', retries: 3, backoff: { baseMs: 500 }, run: findFields },
    { name: 'places', optional: true, retries: 1, run: findPlaces },
  ],
})

async function findFields({ input, attempt, log }) {
  const scanned = await read(input.document)
  // A scanner may read 0 as O and 1 as l. Correcting that is a guess, so the first attempt reads the text as it is.
  const text = attempt === 1 ? scanned : repair(scanned)
  if (attempt > 1) log('reading again, correcting scanner errors')
  const amount = readTotal(text)
  const fields = {
    number: text.match(/(?:no\.|number|reference):?\s+([A-Z]+-\d+)\b/i)?.[1],
    date: text.match(/\b\d{4}-\d{2}-\d{2}\b/)?.[0],
    currency: text.match(/\b(EUR|USD|GBP)\b/)?.[1],
    from: text.match(/\b(?:supplier|corner shop) [a-z]\b/i)?.[0],
    to: text.match(/\bbuyer [a-z]\b/i)?.[0] ?? null,
    total: amount ? amount.text : sumOfLines(text),
    totalIs: amount ? 'printed' : 'summed',
  }
  const missing = Object.keys(fields).filter((name) => fields[name] === undefined)
  if (missing.length > 0) throw new Error(`${input.document} has no readable ${missing.join(', ')}`)
  log('fields found', { total: `${fields.currency} ${fields.total}` })
  return fields
}

async function findPlaces({ input, outputs, progress, signal }) {
  const text = await read(input.document)
  const { totalIs, ...fields } = outputs.fields
  if (totalIs === 'summed')
    throw new PermanentError(`the total ${fields.total} was summed from the lines and does not appear in the text`)
  const wanted = Object.entries(fields).filter(([, value]) => value !== null)
  const places = {}
  for (const [index, [name, value]] of wanted.entries()) {
    await pause((input.seconds * 1000) / wanted.length, undefined, { signal })
    places[name] = placeOf(text, value)
    progress(index + 1, wanted.length, name)
  }
  return places
}

async function read(document) {
  try {
    return await readFile(new URL(document, folder), 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') throw new PermanentError(`document ${document} does not exist`)
    throw error
  }
}

/** Corrects digits that a scanner read as letters, if the rest of the word consists of digits. */
function repair(text) {
  return text.replace(/\S*\d\S*/g, (word) => word.replace(/(?<=[\d.,-])[OolI]+|[OolI]+(?=[\d.,])/g, toDigits))
}

function toDigits(letters) {
  return letters.replace(/[Oo]/g, '0').replace(/[lI]/g, '1')
}

/** The total that the document states, readable or not; undefined if it states none. */
function readTotal(text) {
  const line = text.match(/\b(?:total|amount)\b(?! in)(?:[ :]| of| due|EUR|USD|GBP)*[ \t]+(\S+)/i)
  if (!line) return undefined
  const word = line[1].replace(/[.,]$/, '')
  return { text: /^[\d,]+\.\d{2}$/.test(word) ? word : undefined }
}

function sumOfLines(text) {
  const amounts = [...text.matchAll(/ (\d[\d,]*\.\d{2})$/gm)].map(([, amount]) => Number(amount.replaceAll(',', '')))
  return amounts.length === 0 ? undefined : amounts.reduce((sum, amount) => sum + amount, 0).toFixed(2)
}

/** Line and column from 1, offset from 0. A corrected value is searched for in the form that the scanner wrote. */
function placeOf(text, value) {
  const asScanned = [...value].map((letter) => scannedAs[letter] ?? escaped(letter)).join('')
  const offset = text.search(new RegExp(`(?<!\\w)${asScanned}(?!\\w)`, 'i'))
  if (offset < 0) throw new Error(`${value} does not appear in the text`)
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: before.at(-1).length + 1, offset }
}

const scannedAs = { 0: '[0Oo]', 1: '[1lI]' }

function escaped(letter) {
  return letter.replace(/[.*+?^${}()|[\]\\]/, '\\$&')
}
