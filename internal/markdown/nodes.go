package markdown

import (
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// nodes renders nodes differently from goldmark: raw HTML, code that may be wider than the page, check boxes, bare links.
type nodes struct{}

func (nodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindRawHTML, rawHTML)
	to.Register(ast.KindHTMLBlock, htmlBlock)
	to.Register(ast.KindCodeBlock, codeBlock)
	to.Register(ast.KindFencedCodeBlock, codeBlock)
	to.Register(ast.KindAutoLink, autoLink)
	to.Register(east.KindTaskCheckBox, checkBox)
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		raw := n.(*ast.RawHTML)
		for i := range raw.Segments.Len() {
			segment := raw.Segments.At(i)
			_, _ = w.Write(util.EscapeHTML(segment.Value(source)))
		}
	}
	return ast.WalkSkipChildren, nil
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock)
	if entering {
		_, _ = w.WriteString("<pre tabindex=\"0\">")
		writeLines(w, source, n)
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
	writeLines(w, source, n)
	return ast.WalkContinue, nil
}

func writeLines(w util.BufWriter, source []byte, n ast.Node) {
	lines := n.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		_, _ = w.Write(util.EscapeHTML(line.Value(source)))
	}
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := n.(*ast.AutoLink)
	address := link.URL(source)
	if link.AutoLinkType == ast.AutoLinkEmail {
		address = append([]byte("mailto:"), address...)
	}
	label := util.EscapeHTML(link.Label(source))
	if !leadsOut(address) {
		_, _ = w.Write(label)
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(util.EscapeHTML(util.URLEscape(address, false)))
	_, _ = w.WriteString(`" rel="` + rel + `">`)
	_, _ = w.Write(label)
	_, _ = w.WriteString("</a>")
	return ast.WalkContinue, nil
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
