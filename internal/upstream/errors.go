package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

var errTooLarge = domain.Errorf(domain.BadGateway, "answer is too large: over %d MiB", maxAnswer>>20)

// statusError says what a status other than 200 means.
func statusError(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return domain.Errorf(domain.BadGateway, "redirects, which is not followed (HTTP status %d)", status)
	case status == http.StatusUnauthorized:
		return domain.Errorf(domain.BadGateway, "refuses the token, or wants one (HTTP status 401)")
	case status == http.StatusNotFound:
		return domain.Errorf(domain.BadGateway, "is no project server (HTTP status 404)")
	}
	return domain.Errorf(domain.BadGateway, "answers with HTTP status %d", status)
}

// explain gives a failed call a message for people and keeps the cause for the log. A domain error stays as it is.
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
