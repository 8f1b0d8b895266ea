// The project's own lint rules: which room may import which, where SQL lives, how files are named.
// Usage: node scripts/layers.mjs [folder that holds src/]
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { groups } from './rooms.mjs'

const drawers = ['util', 'utils', 'helper', 'helpers', 'common', 'lib']
const maxLines = 300
const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/
// Small or all capital letters only: a sentence that begins with "Select" is help text.
const statements = ['select', 'insert into', 'update', 'delete from', 'with']
const sqlStart = new RegExp(
  `^(${statements
    .flatMap((s) => [s, s.toUpperCase()])
    .join('|')
    .replaceAll(' ', '\\s+')})\\s`,
)
const sqlShape =
  /^(select\s+(\S+\(|[\d'*$]|.*\sfrom\s)|insert\s+into\s|update\s+\S+(\s+(as\s+)?\w+)?\s+set\s|delete\s+from\s|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s+(not\s+)?(materialized\s+)?\()/is

/** Every broken rule under root/src, each as `file:line sentence`. */
export function findViolations(root) {
  const src = join(root, 'src')
  return filesUnder(src)
    .flatMap((path) => [...nameViolations(path), ...codeViolations(path, join(src, path))])
    .map(({ path, line, sentence }) => `src/${path}:${line} ${sentence}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const violations = findViolations(process.argv[2] ?? join(import.meta.dirname, '..'))
  for (const violation of violations) console.log(violation)
  process.exitCode = violations.length === 0 ? 0 : 1
}

// Paths are relative to src/ and have slashes, on every platform.
function filesUnder(src) {
  if (!existsSync(src)) return []
  return readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(src, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort()
}

function nameViolations(path) {
  const parts = path.split('/')
  const stem = posix.basename(path).split('.')[0]
  const sentences = [
    roomSentence(path, parts),
    ...parts.filter((part) => !kebab.test(part)).map((part) => `"${part}" is not kebab-case.`),
    ...[...parts.slice(0, -1), stem]
      .filter((part) => drawers.includes(part))
      .map((part) => `"${part}" is a drawer; name the file after the one thing it holds.`),
    stem === 'types' && 'Types live beside the code that they describe, not in a types file.',
    stem === 'index' && parts.length > 1 && 'The only index.ts is src/index.ts; a room is entered by its own name.',
  ]
  return sentences.filter(Boolean).map((sentence) => ({ path, line: 1, sentence }))
}

function roomSentence(path, parts) {
  const room = roomOf(path)
  if (parts.length === 1 && room !== 'index') return 'Only index.ts lies directly in src/; move the file into a room.'
  if (groupOf(room) >= 0) return undefined
  return `"${room}" is not a room; add it to scripts/rooms.mjs, or move the file into a room.`
}

function codeViolations(path, file) {
  if (!path.endsWith('.ts')) return []
  const text = readFileSync(file, 'utf8')
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found = []
  const report = (node, sentence) =>
    found.push({ path, line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1, sentence })
  const isTest = path.endsWith('.test.ts')
  const isGenerated = text.slice(0, 500).includes('@generated')
  const lines = text.trimEnd().split('\n').length
  if (lines > maxLines && !isTest && !isGenerated) {
    found.push({ path, line: maxLines + 1, sentence: `${lines} lines are too many for one file; split it by noun.` })
  }
  const visit = (node) => {
    const specifier = specifierOf(node)
    const wrong = specifier && importSentence(path, specifier)
    if (wrong) report(node, wrong)
    if (isAny(node)) report(node, 'No any: take unknown at the edge and parse it once.')
    if (!isTest && !path.endsWith('.sql.ts') && isSql(node)) report(node, 'SQL lives in *.sql.ts files only.')
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

// As a type argument (`Stage<any>`) it can be the only way to say "whichever"; there Biome asks for a written reason.
function isAny(node) {
  return node.kind === ts.SyntaxKind.AnyKeyword && !ts.isTypeReferenceNode(node.parent)
}

function specifierOf(node) {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return literal(node.moduleSpecifier)
  if (ts.isImportTypeNode(node)) return literal(node.argument.literal)
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return literal(node.arguments[0])
  // How a worker thread or a child process names its file.
  if (ts.isNewExpression(node) && node.expression.getText() === 'URL' && node.arguments?.length === 2) {
    return node.arguments[1].getText() === 'import.meta.url' ? `url:${literal(node.arguments[0])}` : undefined
  }
  return undefined
}

function literal(node) {
  return node && ts.isStringLiteralLike(node) ? node.text : undefined
}

function importSentence(path, specifier) {
  const target = targetOf(path, specifier)
  if (!target) return undefined
  const isInside = !target.startsWith('..')
  // A URL may point at data, such as the migrations.
  if (!isInside)
    return specifier.startsWith('url:') || target.endsWith('.json')
      ? undefined
      : 'Code in src/ imports nothing outside of src/.'
  const [from, to] = [roomOf(path), roomOf(target)]
  if (from === to || groupOf(from) < 0 || groupOf(to) < 0) return undefined
  if (groupOf(to) < groupOf(from)) return undefined
  if (groupOf(to) === groupOf(from))
    return `${from} and ${to} are in the same group, and rooms of a group don't import each other.`
  return `${from} may not import ${to}, which is to its right.`
}

function targetOf(path, specifier) {
  const name = specifier.replace(/^url:/, '')
  if (name.startsWith('.')) return posix.join(posix.dirname(path), name)
  if (name.startsWith('#holdfast/')) return name.slice('#holdfast/'.length)
  if (name === 'holdfast' || name.startsWith('holdfast/')) return 'index.ts'
  return undefined
}

function roomOf(path) {
  const [first] = path.split('/')
  return first.replace(/(\.test)?\.[jt]s$/, '')
}

function groupOf(room) {
  return groups.findIndex((group) => group.includes(room))
}

function isSql(node) {
  const text = textOf(node)
    ?.replace(/^(\s+|--.*\n|\/\*.*?\*\/)+/s, '')
    .concat(' ')
  return text !== undefined && sqlStart.test(text) && sqlShape.test(text)
}

function textOf(node) {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map((span) => `$0${span.literal.text}`).join('')
  return undefined
}
