package slack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/slack-go/slack"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

// Slack's error codes for a channel that does not accept a message, and for a token that does not work.
var (
	channelErrors = []string{
		"channel_not_found", "not_in_channel", "is_archived", "restricted_action", "restricted_action_read_only_channel",
		"restricted_action_thread_only_channel", "restricted_action_non_threadable_channel", "msg_too_long", "no_text",
		"invalid_blocks", "thread_not_found", "cannot_reply_to_message", "message_limit_exceeded",
	}
	tokenErrors = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
		"no_permission", "org_login_required", "ekm_access_denied", "access_denied", "two_factor_setup_required",
	}
)

func explain(err error) error {
	refused, isRefused := errors.AsType[slack.SlackErrorResponse](err)
	failed, isFailed := errors.AsType[slack.StatusCodeError](err)
	unanswered, isUnanswered := errors.AsType[*url.Error](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case slices.Contains(channelErrors, refused.Err):
		return fmt.Errorf("%w: %w", bot.ErrRefused, err)
	case slices.Contains(tokenErrors, refused.Err):
		return domain.WrapError(domain.Unauthorized, err,
			"Slack refuses the bot token ("+refused.Err+"). Copy the Bot User OAuth Token, "+
				"which begins with xoxb-, from the app's OAuth & Permissions page, and save.")
	case refused.Err == "missing_scope":
		return domain.WrapError(domain.Unauthorized, err,
			"The Slack app lacks the scope "+bot.Short(refused.Needed, bot.MaxName)+
				". Add it on the app's OAuth & Permissions page, reinstall the app, and save its new token.")
	case isRefused:
		return domain.WrapError(domain.BadGateway, err,
			"Slack answers "+bot.Short(refused.Err, bot.MaxName)+". The bot keeps trying.")
	case isFailed:
		return domain.WrapError(domain.BadGateway, err,
			fmt.Sprintf("Slack answers with status %d. The bot keeps trying.", failed.Code))
	case isUnanswered:
		if address, parseErr := url.Parse(unanswered.URL); parseErr == nil {
			return bot.Unreachable(err, address.Host)
		}
	}
	return domain.WrapError(domain.BadGateway, err, "Slack's answer cannot be understood. The bot keeps trying.")
}
