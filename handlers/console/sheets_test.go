package console_test

import (
	"compress/gzip"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

var (
	linkedSheet = regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)"`)
	linkedFile  = regexp.MustCompile(`(?:href|src)="(/static/[^"]+\.(?:css|js|svg))"`)
	classOfPage = regexp.MustCompile(` class="([^"]+)"`)
	classInCSS  = regexp.MustCompile(`\.((?:[\w-]|\\.)+)`)
)

// TestEachPageHasItsRules: what a page's classes look like is in the style sheets that it links.
func TestEachPageHasItsRules(t *testing.T) {
	s := newWholeSite(t)
	s.Submit("/login", "token", gatewaytest.AdminToken)
	s.asks(permissionFor("make"))
	s.asks(domain.Question{Kind: domain.QuestionChoice, Prompt: "Which?", Options: []string{"a", "b"}, StoryID: "12_story_pay", Project: "alpha"})
	rules := map[string]map[string]bool{} // the classes of each sheet
	anywhere := map[string]bool{}
	for _, path := range append([]string{"/wall"}, everyPage...) {
		page := s.Get(path).Text
		for _, link := range linkedSheet.FindAllStringSubmatch(page, -1) {
			if rules[link[1]] == nil {
				rules[link[1]] = map[string]bool{}
				for _, class := range classInCSS.FindAllStringSubmatch(s.Get(link[1]).Text, -1) {
					name := strings.ReplaceAll(class[1], `\`, "")
					rules[link[1]][name], anywhere[name] = true, true
				}
			}
		}
	}
	if len(rules) < 6 {
		t.Fatalf("%d sheets", len(rules))
	}
	for _, path := range append([]string{"/wall"}, everyPage...) {
		page := s.Get(path).Text
		lacking := map[string]bool{}
		for _, classes := range classOfPage.FindAllStringSubmatch(page, -1) {
			for class := range strings.FieldsSeq(classes[1]) {
				has := !anywhere[class] || class == "quiet" // which looks like something within a log or an axis only
				for _, link := range linkedSheet.FindAllStringSubmatch(page, -1) {
					has = has || rules[link[1]][class]
				}
				if !has {
					lacking[class] = true
				}
			}
		}
		if len(lacking) > 0 {
			t.Errorf("%s lacks the rules of %v", path, lacking)
		}
	}
}

// TestPagesAreLight: any page with its assets is at most 60 kB on the wire.
func TestPagesAreLight(t *testing.T) {
	s := newWholeSite(t)
	s.Submit("/login", "token", gatewaytest.AdminToken)
	for _, path := range everyPage {
		s.isLight(path)
	}
	withChanges, _ := newBranchSite(t)
	withChanges.isLight(payPage)
}

func (s *consoleSite) isLight(path string) {
	s.Helper()
	page := s.Get(path).Text
	sizes := map[string]int{path: gzipped(s, page)}
	sum := sizes[path]
	for _, file := range linkedFile.FindAllStringSubmatch(page, -1) {
		if _, seen := sizes[file[1]]; !seen {
			sizes[file[1]] = gzipped(s, s.Get(file[1]).Text)
			sum += sizes[file[1]]
		}
	}
	if sum > 60_000 {
		s.Errorf("%s: %d bytes, of %v", path, sum, sizes)
	}
}

func gzipped(t testing.TB, text string) int {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}
