package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

var errTooLarge = domain.Errorf(domain.BadGateway, "answer is too large: over %d MiB", maxAnswer>>20)

// errNotFound is the cause of the error for HTTP status 404.
var errNotFound = errors.New("not found")

// checkStatus returns an error unless the status is 200, or with all set, for redirects and 401 only.
func checkStatus(response *http.Response, all bool) error {
	status := response.StatusCode
	switch {
	case status == http.StatusOK:
		return nil
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return domain.Errorf(domain.BadGateway, "answers with a redirect, which is not followed (HTTP status %d)", status)
	case status == http.StatusUnauthorized:
		return domain.Errorf(domain.BadGateway, "refuses the token, or needs one (HTTP status 401)")
	case all:
		return nil
	case status == http.StatusNotFound:
		return domain.WrapError(domain.BadGateway, errNotFound, "is not a project server (HTTP status 404)")
	}
	message := fmt.Sprintf("answers with HTTP status %d", status)
	if status == http.StatusServiceUnavailable {
		if reason := plainReason(response); reason != "" {
			message += ": " + reason
		}
	}
	return domain.Errorf(domain.BadGateway, "%s", message)
}

// maxReason is the most that is read of a reason in an answer, in bytes.
const maxReason = 300

// plainReason returns the first line of a plain-text answer, in which a project server says what is wrong.
func plainReason(response *http.Response) string {
	if mediaType(response.Header) != "text/plain" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // the part before an error will do
	line, _, _ := strings.Cut(strings.ToValidUTF8(string(text), ""), "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line))
}

// mediaType returns the type of an answer without its parameters.
func mediaType(header http.Header) string {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return media
}

// explain gives a failed call a message for people and keeps the cause for the log. A domain error is returned
// unchanged.
func explain(err error, timedOut bool, timeout time.Duration) error {
	var known *domain.Error
	var refused addressError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &refused):
		return domain.WrapError(domain.BadGateway, err, refused.Error())
	case timedOut:
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return domain.WrapError(domain.BadGateway, err, neterr.Describe(err, timeout))
}
