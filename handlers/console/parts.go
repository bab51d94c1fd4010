package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/clock"
	"switchyard/views"
)

// now is the time as pages show it: to the minute, so that within a minute unchanged content renders to the same bytes.
// Scripts show the seconds.
func now() time.Time { return clock.Now().Truncate(time.Minute) }

// part is a rendered part. Its version is the hash of its bytes.
type part struct {
	version string
	html    []byte
}

// renderPart renders a part, and with it the active project, which the answer also names.
func (c *Console) renderPart(ctx context.Context, p views.Part) (*part, error) {
	content, err := renderHTML(ctx, p.Content)
	if err != nil {
		return nil, err
	}
	version := hash([]byte(c.service.Projects.Registry().Active), []byte(p.URL), []byte(p.Title), content)
	html, err := renderHTML(ctx, p.Element(version, templ.Raw(string(content))))
	return &part{version, html}, err
}

// component returns the part for the page that contains it.
func (p *part) component() templ.Component { return templ.Raw(string(p.html)) }

// renderHTML renders a component.
func renderHTML(ctx context.Context, component templ.Component) ([]byte, error) {
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if err := component.Render(ctx, buffer); err != nil {
		return nil, err
	}
	return bytes.Clone(buffer.Bytes()), nil
}

// hash returns the same for the same texts on every gateway.
func hash(texts ...[]byte) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d ", len(text)) // so that "a", "bc" is not "ab", "c"
		_, _ = h.Write(text)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}
