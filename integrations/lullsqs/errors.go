package lullsqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// failed is the error of a call, marked with what is known of it: lull.Permanent where
// the same call will not do better, rate-limited where SQS says so, transient where it
// is SQS' fault. What is not known stays as it is.
func failed(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("lullsqs: %s: %w", what, err)
	if end := ctx.Err(); end != nil {
		if !errors.Is(err, end) {
			err = fmt.Errorf("%w (%w)", err, end)
		}
		return err
	}
	switch {
	case isThrottled(err):
		return lull.RetryAfter(err, 0)
	case isPermanent(err):
		return lull.Permanent(err)
	case status(err) >= 500, fault(err) == smithy.FaultServer, isCutOff(err):
		return lull.Transient(err)
	}
	return err
}

// code is the name of an error of SQS, without what protocols put around it:
// "AWS.SimpleQueueService.NonExistentQueue", "KMS.ThrottlingException",
// "InvalidParameterValueException".
func code(err error) string {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return ""
	}
	c := api.ErrorCode()
	if i := strings.LastIndexAny(c, "#/"); i >= 0 {
		c = c[i+1:]
	}
	c = strings.TrimPrefix(c, "AWS.SimpleQueueService.")
	return strings.TrimSuffix(c, "Exception")
}

func fault(err error) smithy.ErrorFault {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorFault()
	}
	return smithy.FaultUnknown
}

func message(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorMessage()
	}
	return ""
}

func response(err error) *http.Response {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && e.Response != nil {
		return e.Response.Response
	}
	return nil
}

func status(err error) int {
	if r := response(err); r != nil {
		return r.StatusCode
	}
	return 0
}

// is tells of a modelled error.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

var throttles = []string{
	"RequestThrottled", "Throttling", "Throttled", "RequestLimitExceeded", "TooManyRequests", "SlowDown",
	"BandwidthLimitExceeded", "LimitExceeded", "PriorRequestNotComplete", "KmsThrottled", "KMS.Throttling",
}

func isThrottled(err error) bool {
	return is[*types.RequestThrottled](err) || is[*types.KmsThrottled](err) || slices.Contains(throttles, code(err)) || status(err) == http.StatusTooManyRequests
}

// isOverLimit: as many messages are in flight as can be.
func isOverLimit(err error) bool {
	return is[*types.OverLimit](err) || code(err) == "OverLimit"
}

var permanents = []string{
	"AccessDenied", "AuthFailure", "NotAuthorized", "InvalidClientTokenId", "UnrecognizedClient", "MissingAuthenticationToken", "OptInRequired",
	"InvalidAddress", "InvalidSecurity", "UnsupportedOperation", "NonExistentQueue", "QueueDoesNotExist",
	"InvalidMessageContents", "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "InvalidAttributeName", "InvalidAttributeValue",
	"KMS.AccessDenied", "KMS.Disabled", "KMS.InvalidKeyUsage", "KMS.NotFound", "KMS.OptInRequired",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsNotFound", "KmsOptInRequired",
}

func isPermanent(err error) bool {
	return is[*types.QueueDoesNotExist](err) || isNoQueue(err) || slices.Contains(permanents, code(err))
}

func isNoQueue(err error) bool {
	return is[*types.QueueDoesNotExist](err) || code(err) == "NonExistentQueue" || code(err) == "QueueDoesNotExist"
}

// isLost tells of a receipt handle that is not good any more. SQS has said so in
// different ways over the years, and not in every case: see [Queue.Settle].
func isLost(err error) bool {
	if is[*types.MessageNotInflight](err) || is[*types.ReceiptHandleIsInvalid](err) {
		return true
	}
	switch code(err) {
	case "MessageNotInflight", "ReceiptHandleIsInvalid":
		return true
	case "InvalidParameterValue":
		m := message(err)
		return strings.Contains(m, "receipt handle has expired") || strings.Contains(m, "not available for visibility timeout change")
	}
	return false
}

// isTooLong tells of a visibility timeout by which the message would be out for more
// than 12 hours.
func isTooLong(err error) bool {
	return code(err) == "InvalidParameterValue" && strings.Contains(message(err), "Total VisibilityTimeout")
}

// isTooBig tells of a message that is larger than the queue takes.
func isTooBig(err error) bool {
	if is[*types.BatchRequestTooLong](err) {
		return true
	}
	return code(err) == "InvalidParameterValue" && strings.Contains(message(err), "shorter than")
}

// handled is the error of a call with a receipt handle.
func handled(ctx context.Context, what string, err error) error {
	if isLost(err) {
		return fmt.Errorf("lullsqs: %s: %w: %w", what, queue.ErrLost, err)
	}
	return failed(ctx, what, err)
}

// unanswered tells whether it is not known if a call that failed with err took effect.
func unanswered(err error) bool {
	return err != nil && (status(err) == 0 && code(err) == "" || status(err) >= 500 || isCutOff(err))
}

// isCutOff tells of an answer that was no error, but could not be read to its end: the
// connection broke.
func isCutOff(err error) bool { return status(err)/100 == 2 }

// retryAfter is what the header x-amz-retry-after says, in milliseconds, if it is there.
func retryAfter(err error) (time.Duration, bool) {
	r := response(err)
	if r == nil {
		return 0, false
	}
	ms, parse := strconv.ParseInt(r.Header.Get("x-amz-retry-after"), 10, 32)
	return time.Duration(ms) * time.Millisecond, parse == nil && ms >= 0
}
