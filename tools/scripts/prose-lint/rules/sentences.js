/** Words that a sentence may have. Semicolons and colons do not end one. */
const MAX = 25;

/** A span of code is one word, whatever is in it, and a line break is a space. */
function textOf(node) {
  if (node.type === 'Code') return 'code';
  return node.children?.map(textOf).join('') ?? (node.type === 'Html' ? '' : (node.value ?? ' '));
}

/** Published rules count words of lines, not of sentences, or end a sentence at the point of `1.25`. */
export default ({ Syntax, RuleError, report }) => {
  function check(node) {
    for (const sentence of textOf(node).split(/(?<=[.?!][)”"]?)\s+/)) {
      const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
      if (words.length > MAX) report(node, new RuleError(`${words.length} words, not ${MAX}: ${words.join(' ')}`));
    }
  }
  return { [Syntax.Paragraph]: check, [Syntax.TableCell]: check };
};
