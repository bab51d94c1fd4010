package domain_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// FuzzNewProject checks that any accepted project can be called, shown and accepted again, and that errors name a field.
func FuzzNewProject(f *testing.F) {
	for _, url := range []string{
		"http://127.0.0.1:3001", " https://[::1]:1/a%2Fb/ ", "http://", "http://a:0", "http://a:65536", "http://u:p@a", "http://a?", "http://a#", "http:a",
		"ftp://a", "http://a:", "http://\u2028", "http://[fe80::1%25lo]", "HTTP://A", "http://%zz", "//a",
	} {
		f.Add("alpha", url)
	}
	for _, name := range []string{"", " ", ".", "..", "\u00a0a\u3000", "a\x00b", "\xff", strings.Repeat("ä", 101), "a/b?c#d%"} {
		f.Add(name, "http://localhost")
	}
	f.Fuzz(func(t *testing.T, name, address string) {
		p, err := domain.NewProject(name, address)
		if err != nil {
			if message := domain.MessageOf(err); domain.CodeOf(err) != domain.Invalid || !strings.HasPrefix(message, "name: ") && !strings.HasPrefix(message, "url: ") {
				t.Errorf("%q, %q: %v", name, address, err)
			}
			return
		}
		if again, err := domain.NewProject(p.Name, p.URL); err != nil || again != p {
			t.Errorf("%+v becomes %+v, %v", p, again, err)
		}
		if !utf8.ValidString(p.Name) || utf8.RuneCountInString(p.Name) > domain.MaxProjectName || strings.TrimSpace(p.Name) != p.Name || p.Name == "" {
			t.Errorf("name %q", p.Name)
		}
		u, err := url.Parse(p.Endpoint("/api/events"))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !strings.HasSuffix(u.Path, "/api/events") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			t.Errorf("%q is called at %v, %v", p.URL, u, err)
		}
	})
}

func TestNamesCanBeSeen(t *testing.T) {
	for name, want := range map[string]string{
		"alpha":                    "",
		"Ähre/50%":                 "",
		"\u05e9\u05dc\u05d5\u05dd": "",
		"e\u0301":                  "",
		"🚂":                        "",
		"a\u200bb":                 "name: must not contain invisible formatting characters",
		"\u202egnp":                "name: must not contain invisible formatting characters",
		"\ufeffalpha":              "name: must not contain invisible formatting characters",
		"a\x7f":                    "name: must not contain control characters",
		"\u0301":                   "name: must have a visible character",
		"\u3164":                   "name: must have a visible character",
		"\u2800":                   "name: must have a visible character",
	} {
		message := ""
		if err := domain.CheckProjectName(name); err != nil {
			message = domain.MessageOf(err)
		}
		if message != want {
			t.Errorf("%q: %q, want %q", name, message, want)
		}
	}
}
