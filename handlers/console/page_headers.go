package console

import "net/http"

// setPageHeaders sets what browsers must know of pages, and of what pages load. JSON and plain text do without: no browser
// takes them for pages, and these are half of a small answer's bytes.
func setPageHeaders(header http.Header) {
	if header["Referrer-Policy"] == nil { // some addresses must not be sent anywhere
		header["Referrer-Policy"] = sameOrigin
	}
	header["Content-Security-Policy"] = contentPolicy
}

var (
	sameOrigin    = []string{"same-origin"}
	contentPolicy = []string{contentSecurityPolicy}
)

// contentSecurityPolicy holds for every page: scripts, styles and calls come from this origin only, nothing is
// inline, nobody frames the console.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
