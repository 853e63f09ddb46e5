"""What publishing a version takes: the policy of bumps, and the consent of owners."""
