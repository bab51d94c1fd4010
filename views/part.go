package views

import (
	"net/url"
	"strings"

	"github.com/a-h/templ"
)

// Part is the part of a page that refreshes itself: an element around content that depends on Props alone.
type Part struct {
	ID, Class string
	URL       string // from which it refreshes itself, without a version; "" if it no longer changes
	Title     string // of the tab, "" for the page's title
	Content   templ.Component
}

// address returns the address that answers whether the part has changed since this version.
func (p Part) address(version string) string {
	separator := "?"
	if strings.Contains(p.URL, "?") {
		separator = "&"
	}
	return p.URL + separator + "v=" + url.QueryEscape(version)
}
