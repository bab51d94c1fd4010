package bot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"switchyard/internal/domain"
)

// mac returns a value that shows whether a token was obtained with the current password, without storing the password.
func (m *matrix) mac(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(m.password.Reveal()))
	return hex.EncodeToString(mac.Sum(nil))
}

// logIn replaces the token stale with a new one, for the same device, unless another call has already done so.
func (m *matrix) logIn(ctx context.Context, stale string) error {
	m.login.Lock()
	defer m.login.Unlock()
	m.mu.Lock()
	client, session := m.client, m.session
	m.mu.Unlock()
	if session.Token != stale {
		return nil
	}
	request := map[string]any{
		"type":                        "m.login.password",
		"identifier":                  map[string]string{"type": "m.id.user", "user": m.username},
		"password":                    m.password.Reveal(),
		"initial_device_display_name": "Switchyard",
	}
	if session.DeviceID != "" {
		request["device_id"] = session.DeviceID
	}
	var answer struct {
		UserID   string `json:"user_id"`
		DeviceID string `json:"device_id"`
		Token    string `json:"access_token"`
	}
	err := waitOut(ctx, func() error {
		return client.do(ctx, matrixCall{method: http.MethodPost, path: "/v3/login", body: request, answer: &answer})
	})
	if err != nil {
		return loginFailure(err)
	}
	if answer.Token == "" || answer.UserID == "" || answer.DeviceID == "" {
		return domain.Errorf(domain.BadGateway, "The homeserver's answer to the login is incomplete.")
	}
	return m.change(ctx, func(s *matrixSession) {
		if s.UserID != answer.UserID { // the rooms and the position belong to another user
			*s = matrixSession{Rooms: map[string]matrixRoom{}}
		}
		s.UserID, s.DeviceID, s.Token, s.PasswordMAC = answer.UserID, answer.DeviceID, answer.Token, m.mac(answer.Token)
	})
}

// loginFailure gives a failed login a message for people. It hides the matrixError from errors.As: a refused login must not
// be taken for a refusal by the room that a call was about.
func loginFailure(err error) error {
	cause := errors.New("login: " + err.Error())
	var refused *matrixError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.status >= http.StatusInternalServerError || refused.code == "":
		return domain.WrapError(domain.BadGateway, cause, domain.MessageOf(explainMatrix(err)))
	case refused.code == "M_FORBIDDEN":
		return domain.WrapError(domain.Unauthorized, cause, "The homeserver refuses this user name or password. Check Bot username and Password, and save.")
	case refused.code == "M_USER_DEACTIVATED":
		return domain.WrapError(domain.Unauthorized, cause, "This account is deactivated. Enter another one and save.")
	}
	return domain.WrapError(domain.Unauthorized, cause, fmt.Sprintf(
		"The homeserver refuses a login with a password: %s %s.", refused.code, refused.message))
}

// call makes a call within the session. It waits out rate limits, and logs in again once if the token is no longer valid.
func (m *matrix) call(ctx context.Context, call matrixCall) error {
	for again := false; ; again = true {
		m.mu.Lock()
		client, token := m.client, m.session.Token
		m.mu.Unlock()
		if client == nil {
			return domain.Errorf(domain.BadGateway, "The bot is not connected.")
		}
		call.token = domain.Secret(token)
		err := waitOut(ctx, func() error {
			if call.method != http.MethodGet {
				return finish(ctx, func(ctx context.Context) error { return client.do(ctx, call) })
			}
			ctx, cancel := context.WithTimeout(ctx, callLimit)
			defer cancel()
			return client.do(ctx, call)
		})
		var refused *matrixError
		if again || !errors.As(err, &refused) || refused.code != "M_UNKNOWN_TOKEN" {
			return err
		}
		if err := m.logIn(ctx, token); err != nil {
			return err
		}
	}
}
