package console

import "net/http"

// setPageHeaders sets the security headers of pages and of what pages load. JSON and plain text do without: no browser
// takes them for pages, and the headers would be half of a small answer's bytes.
func setPageHeaders(header http.Header) {
	if header["Referrer-Policy"] == nil { // already set for addresses that must never be sent
		header["Referrer-Policy"] = sameOrigin
	}
	header["Content-Security-Policy"] = contentPolicy
}

var (
	sameOrigin    = []string{"same-origin"}
	contentPolicy = []string{contentSecurityPolicy}
)

// contentSecurityPolicy applies to every page: scripts, styles and requests are restricted to this origin, nothing is
// inline, and no other page can frame the console.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src " +
	"'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
