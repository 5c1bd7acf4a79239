# The words of a text that are found most often.
cat /opt/made-with
text="to be or not to be that is the question whether it is nobler to be"
printf '%s\n' $text | sort | uniq -c | sort -rn | head -n "$MOST" | tail -n +$(($1 + 1))
