import { JSONPathClass } from 'jsonpath-plus';
import { isInParentheses, QUOTED_TEXT } from './brackets.ts';
import { MARKS } from './placeholders.ts';

/** Matches quoted text, and `@`, `@parent` and the like, which become names like `_$_v` for the library's parser. */
const CANDIDATE = /('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|@(?:(parentProperty|parent|property|root|path)|(?![\w$]))/g;
const KNOWN = new Set(['v', 'parentProperty', 'parent', 'property', 'root', 'path'].map((name) => `_$_${name}`));
/** The library's own pattern for a filter inside a filter. It ignores the text beside it. */
const NESTED = /@.?([^?]*)[['](\??\(.*?\))(?!.\)\])[\]']/;
/** Methods that run a regular expression, whose time no budget bounds. */
const REGULAR = /^(?:match|matchAll|replace|replaceAll|search|split|test|exec)$/;
/** Allowed methods of texts, lists and numbers: none calls its argument, or makes a value longer. */
const METHOD =
  /^(?:at|charAt|endsWith|hasOwnProperty|includes|indexOf|lastIndexOf|join|slice|startsWith|substring|to(?:LowerCase|UpperCase|Fixed|String)|trim(?:Start|End)?)$/;
const MARK = MARKS.source;
/** A comparison of a member with one text, or with one number by `===`. */
const NAMED = `@(?:\\.[\\w$-]+|\\['[^'\\\\]*'\\])+\\s*(?:===?\\s*(?:'[^'\\\\]*'|"[^"\\\\]*"|${MARK})|===\\s*-?\\d+(?:\\.\\d+)?)`;
/** A filter that selects an entry of a list by one or more members, such as its name. */
export const BY_NAME = new RegExp(`^\\?\\(${NAMED}(?:\\s*&&\\s*${NAMED})*\\)$`, 'u');
const IS_MARK = new RegExp(`^${MARK}$`, 'u');
const HOLDS_MARK = new RegExp(MARK, 'u');
/** Matches a parameter that is a part of a name. */
const JOINED = new RegExp(`[\\w$.]${MARK}|${MARK}(?:[\\w$]|${MARK})`, 'u');
const NO_PART =
  "a parameter is a value here, and no part of a name: write it alone or in quotes, as in [?(@.pair == '{a}-{b}')] or [?(@property == {id})]";
const NOT_ALONE =
  'a filter in a filter must stand alone, as in [?(@.list[?(@.id)])], and no quoted text may be in parentheses';
const UNREADABLE = 'this cannot be evaluated: compare by "==" and the like, join by "&&" or "||", and negate by "!"';
const NO_REGULAR = 'a regular expression would let the upstream stall the service';

/** Returns whether the content of brackets is a filter or a script. */
export function isScript(content: string): boolean {
  return /[?()]/.test(content.replace(QUOTED_TEXT, ''));
}

/**
 * Explains why a filter or script can never match in jsonpath-plus, and what to write instead. Without this check the fault
 * would go unnoticed, since the library treats a failing script as one that does not match.
 *
 * @param content the content of the brackets.
 */
export function scriptFault(content: string): string | undefined {
  return formFault(content) ?? bodyFault(content);
}

/** Returns a fault of the form: to the library, only `?(…)` and `(…)`, without spaces around, are scripts. */
function formFault(content: string): string | undefined {
  if (isInParentheses(content.replace(/^\?/, ''))) return undefined;
  const [, mark, expression = ''] = /^\s*(\??)\s*(.*?)\s*$/s.exec(content) ?? [];
  if (mark === '' && !expression.startsWith('(')) return 'a "(" must be in quotes, or in a filter [?(…)]';
  const written = isInParentheses(expression) ? expression : `(${expression})`;
  return bodyFault(mark + written) ?? `this is taken for a name: write [${mark}${written}]`;
}

/** Returns a fault inside the parentheses. @param script `?(…)` or `(…)` */
function bodyFault(script: string): string | undefined {
  if (JOINED.test(script.replace(QUOTED_TEXT, "''"))) return NO_PART;
  const isFilter = script.startsWith('?');
  const body = isFilter ? script.slice(2, -1) : script;
  const [, member, inner] = (isFilter && NESTED.exec(body)) || [];
  if (member !== undefined && inner !== undefined) {
    const isAlone = /^[\w$-]*$/.test(member) && body === `@${member && `.${member}`}[${inner}]`;
    return isAlone && isInParentheses(inner.replace(/^\?/, '')) ? bodyFault(inner) : NOT_ALONE;
  }
  try {
    const parsed = new (parser().Script)(body.replace(CANDIDATE, (_, quoted, name) => quoted ?? `_$_${name ?? 'v'}`));
    return expressionFault(parsed.ast) ?? (isFilter && isFalse(body, parsed) ? 'this is false for all' : undefined);
  } catch (error) {
    return error instanceof Error ? error.message.replace(/ at character \d+$/, '') : 'this is no expression';
  }
}

interface Script {
  /** The syntax tree of the parser jsep. */
  readonly ast: unknown;
  runInNewContext(context: object): unknown;
}

/** Returns the parser that the library uses; the library's types leave it out. */
function parser(): { readonly Script: new (code: string) => Script } {
  return Reflect.get(JSONPathClass.prototype, 'safeVm');
}

/** Returns whether an expression is false for every candidate. */
function isFalse(body: string, script: Script): boolean {
  return !body.replace(QUOTED_TEXT, '').includes('@') && !HOLDS_MARK.test(body) && !script.runInNewContext({});
}

function isNode(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Returns a fault of an expression that fails on every document. */
function expressionFault(node: unknown): string | undefined {
  if (!isNode(node)) return 'something is missing';
  switch (node.type) {
    case 'Literal':
      return node.value instanceof RegExp ? NO_REGULAR : undefined;
    case 'Identifier':
      return nameFault(String(node.name));
    case 'UnaryExpression':
      return expressionFault(node.argument);
    case 'BinaryExpression':
    case 'LogicalExpression':
      return firstFault([node.left, node.right]);
    case 'ConditionalExpression':
      return firstFault([node.test, node.consequent, node.alternate]);
    case 'ArrayExpression':
      return firstFault(node.elements);
    case 'MemberExpression':
      // A client could name a member that every value has, such as toString.
      if (node.computed === true && holdsMark(node.property)) return NO_PART;
      return firstFault(node.computed === true ? [node.object, node.property] : [node.object]);
    case 'CallExpression':
      return callFault(node.callee, holdsMark(node.arguments)) ?? firstFault(node.arguments);
    default:
      return UNREADABLE;
  }
}

function holdsMark(node: unknown): boolean {
  return isNode(node) && (HOLDS_MARK.test(String(node.name)) || Object.values(node).some(holdsMark));
}

function firstFault(nodes: unknown): string | undefined {
  const list: readonly unknown[] = Array.isArray(nodes) ? nodes : [];
  return list.map(expressionFault).find((fault) => fault !== undefined);
}

function nameFault(name: string): string | undefined {
  if (KNOWN.has(name) || IS_MARK.test(name)) return undefined;
  if (name === '$') return 'the whole document is @root here, not $';
  return `"${name}" is unknown here: a member of the candidate is @.${name}, and a text is '${name}'`;
}

/** Returns a fault of a call. JSON has no functions, so the callee must be a method of every text, list or number. */
function callFault(callee: unknown, takesParameter: boolean): string | undefined {
  if (!isNode(callee) || callee.type !== 'MemberExpression') {
    const name = isNode(callee) && callee.type === 'Identifier' ? ` ${callee.name}()` : '';
    return `there is no function${name}: compare, or use what texts and lists have, as in @.id.startsWith('E') and @.list.length`;
  }
  const { object, property } = callee;
  const name = isNode(property) ? (callee.computed === true ? property.value : property.name) : undefined;
  const fault = expressionFault(object);
  if (fault !== undefined) return fault;
  if (typeof name !== 'string') return 'a method must be called by its name';
  if (REGULAR.test(name)) return NO_REGULAR;
  if (name === 'join' && takesParameter)
    return 'a parameter between the members of a list could make a text of any length';
  return METHOD.test(name) ? undefined : `there is no method ${name}() here, but includes(), startsWith(), endsWith()`;
}
