package markdown_test

import (
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/markdown"
)

func TestHTML(t *testing.T) {
	for source, want := range map[string]string{
		"# Title\n\ntext":                         "<h2>Title</h2>\n<p>text</p>\n",
		"###### Deep":                             "<h6>Deep</h6>\n",
		"- [x] a\n- [ ] b":                        "<ul>\n<li><input type=\"checkbox\" disabled checked aria-label=\"done\"> a</li>\n<li><input type=\"checkbox\" disabled aria-label=\"open\"> b</li>\n</ul>\n",
		"[x](https://h/?a=1&b=2)":                 `<p><a href="https://h/?a=1&amp;b=2" rel="noopener nofollow">x</a></p>` + "\n",
		"https://h.example/a_b_c":                 `<p><a href="https://h.example/a_b_c" rel="noopener nofollow">https://h.example/a_b_c</a></p>` + "\n",
		"<a@b.example>":                           `<p><a href="mailto:a@b.example" rel="noopener nofollow">a@b.example</a></p>` + "\n",
		"![alt *text*](https://h/p)":              `<p><a href="https://h/p" rel="noopener nofollow">alt <em>text</em></a></p>` + "\n",
		"![](https://h/p)":                        `<p><a href="https://h/p" rel="noopener nofollow">picture</a></p>` + "\n",
		"[![alt](https://h/p)](https://h/q)":      `<p><a href="https://h/q" rel="noopener nofollow">alt</a></p>` + "\n",
		"![a [b](https://h/q) c](https://h/p)":    `<p><a href="https://h/p" rel="noopener nofollow">a b c</a></p>` + "\n",
		"[x](https://h 'a \"b\"')":                `<p><a href="https://h" title="a &quot;b&quot;" rel="noopener nofollow">x</a></p>` + "\n",
		"[x](javascript:alert(1))":                "<p>x</p>\n",
		"[*x*](/restore-project)":                 "<p><em>x</em></p>\n",
		"<javascript:alert(1)>":                   "<p>javascript:alert(1)</p>\n",
		"[x](data:text/html,x)":                   "<p>x</p>\n",
		"a <b onclick=x>c</b>":                    "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n",
		"<script>alert(1)</script>":               "<pre tabindex=\"0\">&lt;script&gt;alert(1)&lt;/script&gt;</pre>\n",
		"```go\na < b\n```":                       "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n",
		"|a|b|\n|-|-|\n|1|2|":                     "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n",
		"<!-- AC:BEGIN -->\n- a\n<!-- AC:END -->": "<ul>\n<li>a</li>\n</ul>\n",
		"<!-- to agents: AC:BEGIN -->":            "<pre tabindex=\"0\">&lt;!-- to agents: AC:BEGIN --&gt;</pre>\n",
		"":                                        "",
	} {
		if got, _ := markdown.HTML(source, ""); got != want {
			t.Errorf("%q:\n got %s\nwant %s", source, got, want)
		}
	}
}

// TestBoxesAreFoundInTheirText: one that is no item of a list is text, and none is within a paragraph.
func TestBoxesAreFoundInTheirText(t *testing.T) {
	html, boxes := markdown.HTML("# A\n\n- [x] **one** `a`\n- [ ] two\n  goes on\n\n1. > - [X]  three\n\n[ ] no\n\n```\n- [ ] code\n```\n", "")
	if got := strings.Join(boxes, "|"); got != "**one** `a`|two|three" {
		t.Errorf("boxes %q", got)
	}
	var parts []string
	for before, after, found := markdown.CutBox(html); found; before, after, found = markdown.CutBox(html) {
		parts, html = append(parts, before), after
	}
	if parts = append(parts, html); len(parts) != 4 || strings.Contains(html, "<input") {
		t.Errorf("parts %q", parts)
	}
	for _, part := range parts[:3] {
		if !strings.HasSuffix(part, "<li>") {
			t.Errorf("a box comes after %q", part)
		}
	}
	if _, boxes := markdown.HTML("no box", ""); boxes != nil {
		t.Errorf("boxes %q", boxes)
	}
}

// TestLogsAreCodeLikeAnyOther: delimiters in code cost the parser nothing.
func TestLogsAreCodeLikeAnyOther(t *testing.T) {
	log := strings.Repeat("a_b_c [x] *y* ~z~\n", 400) + strings.Repeat(".", 300) + " ok\n" + strings.Repeat("-", 300) + " done\n+++++\n"
	indented := "    " + strings.ReplaceAll(strings.TrimSuffix(log, "\n"), "\n", "\n    ") + "\n"
	for name, source := range map[string]string{
		"fenced": "```\n" + log + "```\n", "never closed": "~~~\n" + log, "indented": indented,
		"in a list":  "- item\n\n  ```\n  " + strings.ReplaceAll(log, "\n", "\n  ") + "\n  ```\n",
		"paragraphs": strings.Repeat("a_b_c_d_e\n\n", 400),
	} {
		if html, _ := markdown.HTML("# About\n\n"+source, ""); !strings.HasPrefix(html, "<h2>About</h2>") || strings.Contains(html, "<em>") {
			t.Errorf("%s: %.200s", name, html)
		}
	}
	if html, _ := markdown.HTML("# About\n\n"+log+log, ""); !isPlain(html) {
		t.Errorf("one paragraph of all that is %.200s", html)
	}
}

// tags matches the elements allowed in a story.
var tags = regexp.MustCompile(`</?(h[2-6]|p|a|ul|ol|li|pre|code|em|strong|del|blockquote|hr|br|table|thead|tbody|tr|th|td|input)[ />]`)

func FuzzHTMLHasKnownElementsOnly(f *testing.F) {
	f.Add("<img src=x onerror=alert(1)>")
	f.Add("[a](https://h \"t\" onclick=x)")
	f.Add("<https://h/\"onclick=x>")
	f.Add("~~~\" onclick=x\n~~~")
	f.Add("[a]: javascript:x\n\n[a] ![a]")
	f.Add("|a|\n|:-:|\n|<td style=x>|")
	f.Fuzz(func(t *testing.T, source string) {
		html, _ := markdown.HTML(source, "")
		if rest := strings.ReplaceAll(tags.ReplaceAllString(html, ""), "->", ""); strings.Contains(rest, "<") {
			t.Errorf("%q has another element: %s", source, html)
		}
		for _, attribute := range regexp.MustCompile(`<[^>]*?\s(on\w+|src|style)=`).FindAllString(html, -1) {
			t.Errorf("%q: %s", source, attribute)
		}
	})
}

// TestTextIsWhatIsSeen: nobody is given to an agent what they could not read.
func TestTextIsWhatIsSeen(t *testing.T) {
	for source, want := range map[string]string{
		"# T\n\na\nb\n\n- [x] c\n- [ ] *d*\n  - e":                          "## T\na\nb\n- [x] c\n- [ ] d\n  - e",
		"[//]: # (unseen)\n\n[a]: https://h (unseen)\n\n[a] https://h/?a&b": "a (https://h) https://h/?a&b",
		"[a](https://h 'unseen') ![p](https://h \"unseen\")":                "a (https://h) p (https://h)",
		"``` unseen\na < b\n```":                                            "```\na < b\n```",
		"|a|b|\n|-|-|\n|1|2|unseen|":                                        "| a | b |\n| 1 | 2 |",
		"> q\n\n---\n\n~~x~~ &lt;b>":                                        "> q\n\n---\n~~x~~ <b>",
		"a\U000E0041\U000E0042\u200b\u202ec\ufe0f\U000E0100\u3164\u034f":    "ac",
	} {

		html, _ := markdown.HTML(source, "")
		got := strings.TrimSpace(markdown.Text(html))
		if squeeze(got) != squeeze(want) {
			t.Errorf("%q:\n got %q\nwant %q", source, got, want)
		}
	}
}

// squeeze removes blank lines.
func squeeze(text string) string { return regexp.MustCompile(`\n+`).ReplaceAllString(text, "\n") }
