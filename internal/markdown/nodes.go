package markdown

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// nodes renders nodes differently from goldmark: raw HTML, code that may be wider than the page, check boxes, links,
// and pictures from elsewhere as links.
type nodes struct{}

func (nodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindRawHTML, rawHTML)
	to.Register(ast.KindHTMLBlock, htmlBlock)
	to.Register(ast.KindCodeBlock, codeBlock)
	to.Register(ast.KindFencedCodeBlock, codeBlock)
	to.Register(ast.KindAutoLink, link)
	to.Register(ast.KindLink, link)
	to.Register(ast.KindImage, image)
	to.Register(east.KindTaskCheckBox, checkBox)
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeLines(w, source, n.(*ast.RawHTML).Segments)
	}
	return ast.WalkSkipChildren, nil
}

// toolMark matches what Backlog.md puts around a part of a text. It says nothing to readers; other comments may.
var toolMark = regexp.MustCompile(
	`^\s*<!-- (?:AC|DOD|COMMENTS?|SECTION:[A-Z][A-Z0-9_]*):(?:BEGIN|END) -->\s*$`)

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock)
	if lines := block.Lines(); lines.Len() == 1 && toolMark.Match(lines.Value(source)) {
		return ast.WalkContinue, nil
	}
	if entering {
		_, _ = w.WriteString("<pre tabindex=\"0\">")
		writeLines(w, source, n.Lines())
		return ast.WalkContinue, nil
	}
	if block.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkContinue, nil
}

// codeBlock renders code blocks focusable, since they scroll if they are wider than the page.
func codeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre tabindex=\"0\"><code>")
	writeLines(w, source, n.Lines())
	return ast.WalkContinue, nil
}

func writeLines(w util.BufWriter, source []byte, lines *text.Segments) {
	for i := range lines.Len() {
		line := lines.At(i)
		_, _ = w.Write(util.EscapeHTML(line.Value(source)))
	}
}

// link renders a link, or a picture as a link to it. One within another, or with another scheme, is rendered as its
// text alone.
func link(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	address, title := target(n, source)
	leads := leadsOut(address) && !isWithinLink(n, source)
	if !entering {
		if leads {
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	}
	if leads {
		openLink(w, util.URLEscape(address, n.Kind() != ast.KindAutoLink), title)
	}
	if bare, ok := n.(*ast.AutoLink); ok {
		_, _ = w.Write(util.EscapeHTML(bare.Label(source)))
	} else if n.Kind() == ast.KindImage && !n.HasChildren() {
		_, _ = w.WriteString("picture")
	}
	return ast.WalkContinue, nil
}

// loadedFrom is the attribute that says where a picture is loaded from.
const loadedFrom = "src"

// image renders a picture of the board's own, or a link to another one.
func image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	address, loaded := n.AttributeString(loadedFrom)
	if !loaded {
		return link(w, source, n, entering)
	}
	if entering {
		_, _ = w.WriteString(`<img loading="lazy" src="`)
		_, _ = w.Write(util.EscapeHTML(address.([]byte)))
		_, _ = w.WriteString(`" alt="`)
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if text, is := n.(*ast.Text); is && entering {
				_, _ = w.Write(util.EscapeHTML(text.Value(source)))
			}
			return ast.WalkContinue, nil
		})
		_, _ = w.WriteString(`">`)
	}
	return ast.WalkSkipChildren, nil
}

// relative returns an address that is a relative path, unescaped; "" for any other.
func relative(address []byte) string {
	u, err := url.Parse(string(address))
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/") || len(u.Path) > 1000 {
		return ""
	}
	return u.Path
}

// target returns where a link leads, nil for any other node.
func target(n ast.Node, source []byte) (address, title []byte) {
	switch n := n.(type) {
	case *ast.Link:
		return n.Destination, n.Title
	case *ast.Image:
		return n.Destination, n.Title
	case *ast.AutoLink:
		if n.AutoLinkType == ast.AutoLinkEmail {
			return append([]byte("mailto:"), n.URL(source)...), nil
		}
		return n.URL(source), nil
	}
	return nil, nil
}

func openLink(w util.BufWriter, escaped, title []byte) {
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(util.EscapeHTML(escaped))
	_, _ = w.WriteString(`"`)
	if title != nil {
		_, _ = w.WriteString(` title="`)
		html.DefaultWriter.Write(w, title)
		_, _ = w.WriteString(`"`)
	}
	// rel keeps linked pages from accessing the console's window, and search engines from counting the link.
	_, _ = w.WriteString(` rel="noopener nofollow">`)
}

func isWithinLink(n ast.Node, source []byte) bool {
	for outer := n.Parent(); outer.Type() == ast.TypeInline; outer = outer.Parent() {
		if address, _ := target(outer, source); address != nil && leadsOut(address) {
			return true
		}
	}
	return false
}

func leadsOut(address []byte) bool {
	const longest = 2000 // bytes, which browsers and servers accept
	if len(address) > longest {
		return false
	}
	u, err := url.Parse(string(address))
	if err != nil {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || u.Scheme == "mailto"
}

func checkBox(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		box := `<input type="checkbox" disabled aria-label="open"> `
		if n.(*east.TaskCheckBox).IsChecked {
			box = `<input type="checkbox" disabled checked aria-label="done"> `
		}
		_, _ = w.WriteString(box)
	}
	return ast.WalkContinue, nil
}
