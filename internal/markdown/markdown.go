// Package markdown renders the text of stories for pages. The text is untrusted: raw HTML is shown as text, nothing is
// loaded from other sites, links lead only to http, https and mailto addresses, and a text takes little time and
// memory.
//
// It knows nothing of Switchyard.
package markdown

import (
	"html"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxText and maxHTML are how long a text and what becomes of it may be, in bytes.
const (
	maxText = 256 << 10
	maxHTML = 1 << 20
)

// slots are taken by texts that are being formatted: each may take 64 MiB.
var slots = make(chan struct{}, 2)

// topHeading is the level that headings of level 1 get, since the page has its own.
const topHeading = 2

// converter is created when the first text is rendered.
var converter = sync.OnceValue(func() goldmark.Markdown {
	inline := append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(extension.NewStrikethroughParser(), 500))
	bareLinks := util.Prioritized(extension.NewLinkifyParser(), 999)          // not metered: looks at an address only
	cells := extension.WithTableCellAlignMethod(extension.TableCellAlignNone) // pages allow no style attributes
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(metered(parser.DefaultBlockParsers())...),
			parser.WithInlineParsers(append(metered(inline), bareLinks)...),
			parser.WithParagraphTransformers(
				util.Prioritized(meteredDefinitions{parser.LinkReferenceParagraphTransformer}, 100),
				util.Prioritized(meteredTable{extension.NewTableParagraphTransformer()}, 200)),
			parser.WithASTTransformers(
				util.Prioritized(extension.NewTableASTTransformer(), 0),
				util.Prioritized(transformer{}, 1000)),
		)),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(
			util.Prioritized(nodes{}, 1),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
			util.Prioritized(extension.NewTableHTMLRenderer(cells), 500),
		)),
	)
})

// HTML renders Markdown (CommonMark with GitHub's tables, strikethrough, task lists and bare links). A text that is too
// long, or that would take too much time, memory or HTML, is shown as it is, cut after maxText. boxes are what the
// lines of its check boxes say, as written, in order. The first maxPictures pictures whose addresses are relative are
// loaded from pictures with the escaped address behind it, none if that is "".
func HTML(source, pictures string) (html string, boxes []string) {
	defer func() {
		if failed := recover(); failed == (tooCostly{}) {
			html, boxes = plain(source), nil
		} else if failed != nil {
			panic(failed)
		}
	}()
	if len(source) > maxText {
		return plain(source), nil
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	var b page
	pc := parser.NewContext()
	pc.Set(picturesKey, pictures)
	if err := converter().Convert([]byte(source), &b, parser.WithContext(pc)); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	boxes, _ = pc.Get(boxesKey).([]string)
	return b.String(), boxes
}

var boxesKey, picturesKey = parser.NewContextKey(), parser.NewContextKey()

// maxPictures is how many pictures a text loads.
const maxPictures = 50

// CutBox returns what is before and after the first check box in a text that HTML has rendered; found is false if there
// is none.
func CutBox(rendered string) (before, after string, found bool) {
	before, rest, found := strings.Cut(rendered, "<input ")
	_, after, _ = strings.Cut(rest, "> ")
	return before, after, found
}

// page is HTML of at most maxHTML.
type page struct{ strings.Builder }

func (p *page) Write(data []byte) (int, error) {
	if p.Len()+len(data) > maxHTML {
		panic(tooCostly{})
	}
	return p.Builder.Write(data)
}

func plain(source string) string {
	why := "This text is too long or too intricate to be formatted: it is shown as it is"
	if len(source) > maxText {
		source = strings.ToValidUTF8(source[:maxText], "")
		why += ", and ends after 256 KiB"
	}
	return "<p><em>" + why + ".</em></p>\n<pre tabindex=\"0\">" + string(util.EscapeHTML([]byte(source))) + "</pre>\n"
}

// transformer lowers headings, gives table cells a class for their alignment, and collects what check boxes say.
type transformer struct{}

func (transformer) Transform(document *ast.Document, r text.Reader, pc parser.Context) {
	var boxes []ast.Node
	pictures, left := pc.Get(picturesKey).(string), maxPictures
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering {
				n.Level = min(n.Level+topHeading-1, 6)
			}
		case *east.TableCell:
			if n.Alignment == east.AlignRight || n.Alignment == east.AlignCenter {
				n.SetAttributeString("class", n.Alignment.String())
			}
		case *ast.Image:
			if address := relative(n.Destination); entering && pictures != "" && address != "" && left > 0 {
				left--
				n.SetAttributeString(loadedFrom, []byte(pictures+url.QueryEscape(address)))
			}
		case *east.TaskCheckBox:
			if entering {
				boxes = append(boxes, n.Parent())
			}
		}
		return ast.WalkContinue, nil
	})
	if len(boxes) > 0 {
		pc.Set(boxesKey, openBoxes(boxes, r.Source()))
	}
}

// openBoxes returns what the lines of check boxes say, given their blocks. It turns paragraphs among them into plain
// text, since a paragraph cannot contain a form.
func openBoxes(blocks []ast.Node, source []byte) (texts []string) {
	for _, block := range blocks {
		line := block.Lines().At(0)
		_, text, _ := strings.Cut(string(line.Value(source)), "]")
		texts = append(texts, strings.TrimSpace(text))
		if block.Kind() != ast.KindParagraph {
			continue
		}
		bare := ast.NewTextBlock()
		bare.SetLines(block.Lines())
		for child := block.FirstChild(); child != nil; child = block.FirstChild() {
			bare.AppendChild(bare, child)
		}
		block.Parent().ReplaceChild(block.Parent(), block, bare)
	}
	return texts
}

// marks is what elements look like in a text. Others look like their content.
var marks = map[string]string{
	"h2": "## ", "h3": "### ", "h4": "#### ", "h5": "##### ", "h6": "###### ", "hr": "---", "blockquote": "> ",
	"td": "| ", "th": "| ", "/td": " ", "/th": " ", "/tr": "|", "del": "~~", "/del": "~~", "pre": "```\n", "/pre": "```",
}

// Text returns what a reader sees of a text that HTML has rendered: without link definitions, titles, languages of
// code, and characters that cannot be seen.
func Text(rendered string) string {
	var b strings.Builder
	lists, label, address := 0, 0, ""
	for rendered != "" {
		text, rest, _ := strings.Cut(rendered, "<")
		b.WriteString(html.UnescapeString(text))
		tag, next, _ := strings.Cut(rest, ">")
		name, attributes, _ := strings.Cut(tag, " ")
		switch name {
		case "ul", "ol":
			lists++
		case "/ul", "/ol":
			lists--
		case "li":
			b.WriteString(strings.Repeat("  ", max(0, lists-1)) + "- ")
		case "input":
			if strings.Contains(attributes, " checked ") {
				b.WriteString("[x]")
			} else {
				b.WriteString("[ ]")
			}
		case "img":
			_, alt, _ := strings.Cut(attributes, ` alt="`)
			alt, _, _ = strings.Cut(alt, `"`)
			b.WriteString(html.UnescapeString(alt))
		case "a":
			address, _, _ = strings.Cut(strings.TrimPrefix(attributes, `href="`), `"`)
			address, label = html.UnescapeString(address), b.Len()
		case "/a":
			if b.String()[label:] != address {
				b.WriteString(" (" + address + ")")
			}
		}
		b.WriteString(marks[name])
		switch name {
		case "li", "blockquote", "tr", "/td", "/th":
			next = strings.TrimPrefix(next, "\n")
		}
		rendered = next
	}
	return Visible(b.String())
}

// Visible returns a text without the characters that cannot be seen, in which instructions may be hidden.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, text)
}
