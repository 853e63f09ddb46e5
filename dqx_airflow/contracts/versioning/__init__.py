"""The requirements for publishing a version: the policy of bumps, and the consent of owners."""
