// The pages of the library reference.
import { settingNames, settingOf } from '../../dist/config/settings.js'
import {
  alias,
  code,
  defaultIn,
  fenced,
  firstSentence,
  flat,
  generics,
  leftOut,
  paragraphs,
  shortened,
  signature,
  table,
  union,
} from './markdown.mjs'
import { topicOf, topics } from './topics.mjs'
import { basesOf, describe, literalsOf, namedIn, readExports } from './types.mjs'

const mark = '<!-- Written by `npm run generate` from the types and doc comments of src/. Change those. -->'
const folder = 'docs/reference/library'

const maxCell = 200
const order = { function: 0, interface: 2, type: 2, value: 3, class: 4 }

const exported = readExports().map((one) => ({ ...one, topic: topicOf(one) }))
const bySymbol = new Map(exported.map((one) => [one.symbol, one]))
const shown = [...exported, ...unexported()]
const prefixes = new Map(handleParts())

/** Every page, by its path in the repository. */
export function libraryPages() {
  const pages = topics.map((topic) => [`${folder}/${topic.page}.md`, pageOf(topic)])
  return new Map([[`${folder}.md`, contents()], ...pages])
}

/** Exports, methods and options without a comment: a caller could only guess what they mean. */
export function withoutComment() {
  const places = shown.flatMap((one) => {
    const { name, from, doc, methods = [], fields = [] } = one
    const options = from || areOptions(fields) ? fields.filter(({ isOptional }) => isOptional) : []
    const members = [...methods, ...options].filter((member) => !member.doc && !isSetting(member))
    return [...(doc ? [] : [one]), ...members.map((member) => ({ ...member, name: `${name}.${member.name}` }))]
  })
  return places.map(({ name, file }) => `src/${file}.ts: ${name} has no doc comment.`)
}

function areOptions(fields) {
  return fields.length > 0 && fields.every(({ isOptional }) => isOptional)
}

function contents() {
  const parts = topics.map((topic) => {
    const path = `library/${topic.page}.md`
    const rows = of(topic).map((one) => `- [${code(one.name)}](${path}#${anchor(one.name)}): ${firstSentence(one.doc)}`)
    return `## ${topic.title}\n\n${topic.about} From ${sources(topic)}; [details](${path}).\n\n${rows.join('\n')}`
  })
  const about = `Every export of the package, with its type and its doc comment. \`hf\` is what [${code('connect')}](library/connect.md#connect) returns; see [its methods](library/holdfast.md#holdfast).`
  const list = topics.map(({ title }) => `- [${title}](#${anchor(title)})`).join('\n')
  return `# Library reference\n\n${mark}\n\n${about}\n\n${list}\n\n${parts.join('\n\n')}\n`
}

function pageOf(topic) {
  const mine = of(topic)
  const others = shown.filter((one) => one.topic === topic && !one.from)
  const list = mine.map(({ name }) => `[${code(name)}](#${anchor(name)})`).join(', ')
  return `${[
    `# ${topic.title}`,
    mark,
    `${topic.about} From ${sources(topic)}; part of the [library reference](../library.md).`,
    `On this page: ${list}.`,
    ...mine.map((one) => entry(one, '##')),
    ...(others.length > 0
      ? ['## Types without an export', 'The types above refer to these. They are not exported.']
      : []),
    ...others.map((one) => entry(one, '###')),
  ].join('\n\n')}\n`
}

function of(topic) {
  const rank = ({ symbol, form }) => (prefixes.has(symbol) ? 1 : order[form])
  return exported.filter((one) => one.topic === topic).sort((a, b) => rank(a) - rank(b))
}

function sources(topic) {
  return [...new Set(of(topic).map(({ from }) => code(from)))].join(', ')
}

function entry(one, level) {
  return [`${level} ${one.name}`, ...bodyOf(one, level)].filter(Boolean).join('\n\n')
}

function bodyOf(one, level) {
  const { form, node, doc } = one
  const text = paragraphs(doc)
  if (form === 'function') return functionBody(one, text)
  if (form === 'value') return [fenced(constant(one)), text]
  if (one.file === 'client/schema') return [text, 'All of them are in [openapi.json](../openapi.json).']
  const whole = wholeOf(one)
  if (whole) return [text, `Its members are described with [${code(whole.name)}](#${anchor(whole.name)}).`]
  return [
    declarationOf(one),
    text,
    ...fieldTables(one),
    links(one, ...one.fields.map(({ type }) => type), ...(form === 'type' && !literalsOf(one) ? [node] : [])),
    methodList(one),
    ...one.methods.map((method) => methodEntry(one, method, `${level}#`)),
  ]
}

function functionBody(one, text) {
  const { name, from } = one
  const inPlace = leftOut(name, one)
  // the other entry points export little, so the page shows where to import a function from
  const imported = from === 'holdfast' ? '' : `import { ${name} } from '${from}'\n\n`
  return [
    fenced(`${imported}${signature(name, one)}`),
    text,
    fieldTable(inPlace, 'field'),
    links(one, ...inPlace.map(({ type }) => type), ...partsOf(one)),
  ]
}

// An interface without parameters is its table; everything else has to be seen as it is written.
function declarationOf(one) {
  const { form, name, node, makes, fields } = one
  if (form === 'class') return fenced(makes ? signature(`new ${name}`, makes) : `class ${name}`)
  if (form === 'interface')
    return node.typeParameters?.length ? fenced(`interface ${name}${generics(node.typeParameters)}`) : ''
  const literals = literalsOf(one)
  if (literals) return fenced(union(name, literals))
  return fields.length > 0 && !node.typeParameters?.length ? '' : fenced(alias(node))
}

function constant({ name, node }) {
  return `const ${name}: ${shortened(node.type, maxCell)}`
}

function methodList(one) {
  if (one.methods.length < 4) return ''
  return `Methods: ${one.methods.map(({ name }) => `[${code(name)}](#${anchor(callName(one, name))})`).join(', ')}.`
}

function callName(owner, name) {
  return `${prefixes.get(owner.symbol) ?? owner.name}.${name}`
}

function methodEntry(owner, method, level) {
  return [
    `${level} ${callName(owner, method.name)}`,
    fenced(signature(method.name, method)),
    paragraphs(method.doc),
    links(owner, ...partsOf(method)),
  ]
    .filter(Boolean)
    .join('\n\n')
}

function partsOf({ typeParameters, parameters, returns }) {
  return [...typeParameters, ...parameters, returns]
}

function fieldTables({ name, node, fields }) {
  const head = areOptions(fields) ? 'option' : 'field'
  const own = fieldTable(
    fields.filter((one) => !isSetting(one)),
    head,
  )
  if (!bases(node).some(isSetting)) return [own]
  return [
    own,
    `Every setting is also an option of ${code(name)}. [Settings](../settings.md) lists their ranges, environment variables and flags.`,
    settingTable(),
  ]
}

function fieldTable(fields, head) {
  if (fields.length === 0) return ''
  const rows = fields.map((one) => ({ ...one, ...defaultIn(one.doc) }))
  const hasDefaults = rows.some(({ standard }) => standard)
  return table(
    [head, 'type', ...(hasDefaults ? ['default'] : []), 'meaning'],
    rows.map(({ name, isOptional, type, standard, text }) => [
      code(`${name}${isOptional ? '?' : ''}`),
      code(type ? shortened(type, maxCell) : 'unknown'),
      ...(hasDefaults ? [standard] : []),
      text,
    ]),
  )
}

function settingTable() {
  const types = { whole: 'number', duration: 'number', flag: 'boolean', list: 'readonly string[]', text: 'string' }
  return table(
    ['option', 'type', 'default', 'meaning'],
    settingNames.map((name) => {
      const setting = settingOf(name)
      const standard = [setting.default ?? []].flat().join(',')
      return [code(`${name}?`), code(types[setting.type]), standard === '' ? '' : code(standard), flat(setting.about)]
    }),
  )
}

function isSetting({ file }) {
  return file.startsWith('config/')
}

function links(from, ...nodes) {
  const targets = namedIn(...nodes)
    .map((symbol) => shown.find((one) => one.symbol === symbol))
    .filter((one) => one && one !== from)
  if (targets.length === 0) return ''
  const list = targets.map((one) => {
    const page = one.topic === from.topic ? '' : `${one.topic.page}.md`
    return `[${code(one.name)}](${page}#${anchor(one.name)})`
  })
  return `Types: ${list.join(', ')}.`
}

/** The part of the handle that extends this interface. */
function wholeOf({ symbol }) {
  return exported.find((other) => prefixes.has(other.symbol) && bases(other.node).some((one) => one.symbol === symbol))
}

function bases(node) {
  return basesOf(node).map(describe)
}

/** How the parts of the handle are called: `hf`, `hf.events` and so on. */
function handleParts() {
  const handle = exported.find(({ name }) => name === 'Holdfast')
  const parts = handle.fields.flatMap(({ name, type }) => namedIn(type).map((symbol) => [symbol, `hf.${name}`]))
  return [[handle.symbol, 'hf'], ...parts.filter(([symbol]) => bySymbol.has(symbol))]
}

/** Types that are not exported, and that shown ones name: on the page of the first that does. */
function unexported() {
  const found = new Map()
  const queue = [...exported]
  for (const one of queue) {
    for (const symbol of namedIn(...visibleNodes(one))) {
      if (bySymbol.has(symbol) || found.has(symbol)) continue
      const other = { ...describe(symbol), topic: one.topic }
      // without a comment it is only how another type is made
      if (isSetting(other) || other.form === 'value' || !other.doc) continue
      found.set(symbol, other)
      queue.push(other)
    }
  }
  return [...found.values()]
}

function visibleNodes(one) {
  if (one.from === 'holdfast/client' || one.form === 'value' || literalsOf(one)) return []
  const members = one.fields?.filter((field) => !isSetting(field)) ?? []
  const calls = one.form === 'function' ? [one] : (one.methods ?? [])
  const isWritten = one.form === 'type' && members.length === 0 && (one.from || !one.node.typeParameters?.length)
  return [
    ...members.map(({ type }) => type),
    ...calls.filter((call) => leftOut(one.name, call).length === 0).flatMap(partsOf),
    ...calls.flatMap((call) => leftOut(one.name, call).map(({ type }) => type)),
    ...(isWritten ? [one.node] : []),
  ]
}

/** How GitHub addresses a heading. */
function anchor(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}
