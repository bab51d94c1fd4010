package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// budget is how many bytes the parser may look at, all its looking back and ahead counted. It takes more than linear
// time and memory for many constructs: emphasis, nested lists, tables, link definitions
// (TestHostileTextIsRenderedSoon).
const budget = 16 << 20

// Costs of what takes memory rather than time, in the same unit.
const (
	blockCost  = 300 // a block, or a cell of a table
	lineCost   = 60  // a line of a block that is open
	inlineCost = 100 // what may begin an element within a line
)

// tooCostly is the value of the panic that ends the work on a text: neither parser nor renderer can be stopped
// otherwise.
type tooCostly struct{}

var spentKey = parser.NewContextKey()

// account is what one text has cost.
type account struct{ spent, escapes int }

func accountOf(pc parser.Context) *account {
	return pc.ComputeIfAbsent(spentKey, func() any { return new(account) }).(*account)
}

func (a *account) spend(cost int) {
	if a.spent += cost; a.spent > budget {
		panic(tooCostly{})
	}
}

// meteredBlock is a parser of blocks: it may look at the rest of a line, for each block within another.
type meteredBlock struct{ parser.BlockParser }

func (m meteredBlock) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := r.PeekLine()
	accountOf(pc).spend(len(line))
	node, state := m.BlockParser.Open(parent, r, pc)
	if node != nil {
		accountOf(pc).spend(blockCost)
	}
	return node, state
}

func (m meteredBlock) Continue(node ast.Node, r text.Reader, pc parser.Context) parser.State {
	line, _ := r.PeekLine()
	accountOf(pc).spend(len(line) + lineCost)
	return m.BlockParser.Continue(node, r, pc)
}

// meteredInline is a parser of elements within a paragraph: it may look at the whole paragraph, for each character that
// may begin or end an element.
type meteredInline struct{ parser.InlineParser }

func (m meteredInline) Parse(parent ast.Node, r text.Reader, pc parser.Context) ast.Node {
	lines := parent.Lines()
	accountOf(pc).spend(inlineCost + lines.At(lines.Len()-1).Stop - lines.At(0).Start)
	return m.InlineParser.Parse(parent, r, pc)
}

func (m meteredInline) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if closer, ok := m.InlineParser.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}

// meteredDefinitions finds link definitions at the start of a paragraph: each moves all lines below it.
type meteredDefinitions struct{ parser.ParagraphTransformer }

func (m meteredDefinitions) Transform(node *ast.Paragraph, r text.Reader, pc parser.Context) {
	definitions, lines := 0, node.Lines()
	for i := range lines.Len() {
		if line := lines.At(i); bytes.Contains(line.Value(r.Source()), []byte("]:")) {
			definitions++
		}
	}
	accountOf(pc).spend(definitions * (blockCost + lines.Len()))
	m.ParagraphTransformer.Transform(node, r, pc)
}

// meteredTable makes tables of paragraphs: each row gets as many cells as there are columns. Pipes that are escaped in
// code are compared with each other.
type meteredTable struct{ parser.ParagraphTransformer }

func (m meteredTable) Transform(node *ast.Paragraph, r text.Reader, pc parser.Context) {
	columns, escapes, lines, a := 0, 0, node.Lines(), accountOf(pc)
	for i := range lines.Len() {
		segment := lines.At(i)
		line := segment.Value(r.Source())
		if len(bytes.Trim(line, " \t\r\n|:-")) == 0 {
			columns = max(columns, 1+bytes.Count(line, []byte("|")))
		}
		escapes += bytes.Count(line, []byte(`\|`))
	}
	if columns > 0 {
		a.escapes += escapes
		a.spend(columns*lines.Len()*blockCost + escapes*a.escapes)
	}
	m.ParagraphTransformer.Transform(node, r, pc)
}

func metered(parsers []util.PrioritizedValue) []util.PrioritizedValue {
	for i, p := range parsers {
		switch p := p.Value.(type) {
		case parser.BlockParser:
			parsers[i].Value = meteredBlock{p}
		case parser.InlineParser:
			parsers[i].Value = meteredInline{p}
		}
	}
	return parsers
}
