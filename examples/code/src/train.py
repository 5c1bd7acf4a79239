print("edit this line and submit again")
