// Package markdown renders the text of stories for pages. The text is untrusted: raw HTML is shown as text, nothing is loaded
// from other sites, and links lead only to http, https and mailto addresses.
//
// It knows nothing of Switchyard.
package markdown

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of constructs for which the parser takes more than linear time. Text that exceeds them is shown unrendered.
const (
	// maxDepth is how deep quotes and lists may be nested.
	maxDepth = 100
	// maxDelimiters is how many delimiters of emphasis and links a paragraph, heading or table cell may have. Without it,
	// 256 KiB of "_a*" took four minutes (TestHostileTextIsRenderedSoon).
	maxDelimiters = 1000
)

// topHeading is the level that headings of level 1 get, since the page has its own.
const topHeading = 2

// converter is created when the first text is rendered.
var converter = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))), // pages allow no style attributes
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(transformer{}, 1000))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
	)
})

// HTML renders Markdown (CommonMark with GitHub's tables, strikethrough, task lists and bare links).
func HTML(source string) string {
	if tooComplex(source) {
		return "<pre tabindex=\"0\">" + string(util.EscapeHTML([]byte(source))) + "</pre>\n"
	}
	var b bytes.Buffer
	if err := converter().Convert([]byte(source), &b); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return b.String()
}

// blocks parses blocks only, in linear time: nothing within a line, and no link definitions, for which the parser takes quadratic
// time.
var blocks = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)))
})

// tooComplex reports whether the text may nest quotes and lists too deeply, or has too many delimiters in one paragraph, not
// counting code.
func tooComplex(source string) bool {
	delimiters := 0
	for line := range strings.Lines(source) {
		rest := strings.TrimLeft(line, " \t>-+*0123456789.)")
		start := line[:len(line)-len(rest)]
		if markers(start)+(count(start, " ")+4*count(start, "\t"))/2 > maxDepth {
			return true
		}
		delimiters += count(line, delimiterSet)
	}
	return delimiters > maxDelimiters && delimitersWithinABlock([]byte(source)) > maxDelimiters
}

const delimiterSet = "*_~[]"

// markers returns how many quotes and list items may begin at the start of a line. List markers are followed by space.
func markers(start string) int {
	n := count(start, ">")
	for i := range len(start) {
		if strings.IndexByte("-+*.)", start[i]) >= 0 && (i+1 == len(start) || start[i+1] == ' ' || start[i+1] == '\t') {
			n++
		}
	}
	return n
}

// delimitersWithinABlock returns the largest number of delimiters in any block.
func delimitersWithinABlock(source []byte) (most int) {
	_ = ast.Walk(blocks().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && n.Type() == ast.TypeBlock && !n.IsRaw() {
			most = max(most, count(string(n.Lines().Value(source)), delimiterSet))
		}
		return ast.WalkContinue, nil
	})
	return most
}

// count returns how many bytes of text are in set.
func count(text, set string) (n int) {
	for i := range len(text) {
		if strings.IndexByte(set, text[i]) >= 0 {
			n++
		}
	}
	return n
}

// transformer lowers headings, turns images into links, and replaces links to other schemes by their text.
type transformer struct{}

func (transformer) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	var links []ast.Node
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Heading:
				n.Level = min(n.Level+topHeading-1, 6)
			case *east.TableCell:
				if n.Alignment == east.AlignRight || n.Alignment == east.AlignCenter {
					n.SetAttributeString("class", n.Alignment.String())
				}
			case *ast.Link, *ast.Image:
				links = append(links, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range slices.Backward(links) { // inner ones first
		switch n := n.(type) {
		case *ast.Image:
			link := ast.NewLink()
			link.Destination, link.Title = n.Destination, n.Title
			if !n.HasChildren() {
				n.AppendChild(n, ast.NewString([]byte("picture")))
			}
			replace(n, link)
		case *ast.Link:
			if !leadsOut(n.Destination) {
				replace(n, nil)
			}
		}
	}
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.SetAttributeString("rel", []byte(rel))
		}
		return ast.WalkContinue, nil
	})
}

// replace replaces n by next, moving n's children to it, or by the children alone if next is nil: a link within a link, or one to
// another scheme, becomes its text.
func replace(n ast.Node, next *ast.Link) {
	parent := n.Parent()
	if next != nil && leadsOut(next.Destination) && !withinLink(parent) {
		parent.InsertBefore(parent, n, next)
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			next.AppendChild(next, child)
		}
	} else {
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
	}
	parent.RemoveChild(parent, n)
}

func withinLink(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// rel keeps linked pages from accessing the console's window, and search engines from counting the link.
const rel = "noopener nofollow"

func leadsOut(address []byte) bool {
	u, err := url.Parse(string(address))
	if err != nil {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || u.Scheme == "mailto"
}
